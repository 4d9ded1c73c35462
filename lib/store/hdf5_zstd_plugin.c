/* The zstd filter of HDF5 (id 32015) as a plug-in, so that h5py, h5dump and others read and write zstd
   chunks: put it in a folder that HDF5_PLUGIN_PATH names. A stored chunk is one zstd frame with its content
   size; the first client value is the level. Id registered at
   https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md */
#include <H5PLextern.h>
#include <stdlib.h>
#include <zstd.h>

#define FILTER_ID 32015
#define DEFAULT_LEVEL 3
/* HDF5 counts a chunk's bytes in 32 bits. */
static const unsigned long long kMaxChunkBytes = 0xffffffffu;

/* Puts a new buffer in the place of the old one; returns its size, or 0 when there is none. */
static size_t replace_buffer(void *made, size_t made_bytes, size_t room, size_t *buffer_bytes,
                             void **buffer) {
  if (ZSTD_isError(made_bytes)) {
    free(made);
    return 0;
  }
  free(*buffer);
  *buffer = made;
  *buffer_bytes = room;
  return made_bytes;
}

static size_t decode(size_t bytes, size_t *buffer_bytes, void **buffer) {
  const unsigned long long raw_bytes = ZSTD_getFrameContentSize(*buffer, bytes);
  void *raw;
  if (raw_bytes == 0 || raw_bytes > kMaxChunkBytes) return 0; /* unknown and damaged are larger */
  raw = malloc((size_t)raw_bytes);
  if (raw == NULL) return 0;
  return replace_buffer(raw, ZSTD_decompress(raw, (size_t)raw_bytes, *buffer, bytes), (size_t)raw_bytes,
                        buffer_bytes, buffer);
}

static size_t encode(int level, size_t bytes, size_t *buffer_bytes, void **buffer) {
  const size_t room = ZSTD_compressBound(bytes);
  void *stored = malloc(room);
  ZSTD_CCtx *context = ZSTD_createCCtx();
  size_t made = 0;
  if (stored == NULL || context == NULL) {
    free(stored);
    ZSTD_freeCCtx(context);
    return 0;
  }
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  made = ZSTD_compress2(context, stored, room, *buffer, bytes);
  ZSTD_freeCCtx(context);
  return replace_buffer(stored, made, room, buffer_bytes, buffer);
}

static size_t filter(unsigned flags, size_t value_count, const unsigned values[], size_t bytes,
                     size_t *buffer_bytes, void **buffer) {
  if ((flags & H5Z_FLAG_REVERSE) != 0) return decode(bytes, buffer_bytes, buffer);
  return encode(value_count > 0 ? (int)values[0] : DEFAULT_LEVEL, bytes, buffer_bytes, buffer);
}

static const H5Z_class2_t kZstdClass = {H5Z_CLASS_T_VERS, FILTER_ID, 1, 1, "zstd", NULL, NULL, filter};

H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_FILTER; }
const void *H5PLget_plugin_info(void) { return &kZstdClass; }
