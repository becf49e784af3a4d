/* The option of a test that wants coded blocks: a codec of this build, if it has one. */
#ifndef VV_TESTS_CODED_H
#define VV_TESTS_CODED_H

#include "vv_config.h"

#if VV_HAVE_ZSTD
#define CODED "codec=zstd"
#elif VV_HAVE_LZ4
#define CODED "codec=lz4"
#else
#define CODED "codec=none"
#endif
#if VV_HAVE_LZ4
#define CODED_FAST "codec=lz4"
#else
#define CODED_FAST CODED
#endif

#endif
