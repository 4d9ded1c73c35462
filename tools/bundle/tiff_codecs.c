/* Take the place of codecs of libtiff that decode/tiff.cpp rejects before they are asked: JBIG-KIT would put
   the bundle under the GPL, and Lerc would be one more library. */
#include <tiffio.h>

static int fail(TIFF* file, const char* codec) {
  TIFFErrorExt(TIFFClientdata(file), codec, "not in this build");
  return 0;
}

int TIFFInitJBIG(TIFF* file, int scheme);
int TIFFInitLERC(TIFF* file, int scheme);
int TIFFInitJBIG(TIFF* file, int scheme) { return (void)scheme, fail(file, "JBIG"); }
int TIFFInitLERC(TIFF* file, int scheme) { return (void)scheme, fail(file, "LERC"); }
