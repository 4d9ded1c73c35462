// The limit to measure against: libjpeg-turbo alone, decoding whole files from memory to RGB on all threads.
// usage: bare_decode THREADS FILE... ; prints images per second and the CPU microseconds of one.
#include <cstddef>
#include <cstdio>
// jpeglib.h needs the two above.
#include <jpeglib.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

void decode(const std::string& file, std::vector<unsigned char>& pixels) {
  jpeg_error_mgr errors;
  jpeg_decompress_struct jpeg;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  const std::size_t row_bytes = std::size_t{jpeg.output_width} * 3;
  pixels.resize(row_bytes * jpeg.output_height);
  while (jpeg.output_scanline < jpeg.output_height) {
    unsigned char* row = pixels.data() + jpeg.output_scanline * row_bytes;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::vector<std::string> files;
  for (int index = 2; index < argc; ++index) {
    std::ifstream file(argv[index], std::ios::binary);
    std::string& bytes = files.emplace_back(std::filesystem::file_size(argv[index]), '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::atomic<std::size_t> next{0};
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t cpu_begin = std::clock();
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < std::atoi(argv[1]); ++thread)
      threads.emplace_back([&] {
        std::vector<unsigned char> pixels;
        for (std::size_t index = next++; index < files.size(); index = next++) decode(files[index], pixels);
      });
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double cpu_seconds = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
  const auto count = static_cast<double>(files.size());
  std::printf("%.0f %.1f\n", count / seconds, cpu_seconds * 1e6 / count);
}
