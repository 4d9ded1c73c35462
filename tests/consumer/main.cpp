// A stranger's program: nothing but the installed package and a compiler.
#include <chunkhit/pack.h>
#include <chunkhit/version.h>

#include <iostream>

int main() {
  try {
    static_cast<void>(chunkhit::read_pack_info("/nonexistent/pack"));
  } catch (const chunkhit::Error& error) {
    std::cout << chunkhit::version() << ": " << error.what() << "\n";
    return error.code() == chunkhit::ErrorCode::bad_data ? 0 : 1;
  }
  return 1;
}
