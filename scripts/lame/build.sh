#!/usr/bin/env bash
# Builds workers/audio/lame.wasm from the source of LAME, unchanged, for those who want to check or replace that file.
# Debian: apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32, and `apt-get source --download-only lame`.
#
#   scripts/lame/build.sh lame_3.100.orig.tar.gz
. "$(dirname "$(realpath "$0")")/../wasm.sh"
unpack "${1:?the source of LAME, lame_3.100.orig.tar.gz}" ddfe36cab873794038ae2c1210557ad34857a4b6bdc515785d1da9e175b1da1e
# What configure finds for a 32-bit machine with IEEE 754 numbers.
cat >config.h <<'C'
#define STDC_HEADERS 1
#define HAVE_ERRNO_H 1
#define HAVE_FCNTL_H 1
#define HAVE_INTTYPES_H 1
#define HAVE_LIMITS_H 1
#define HAVE_MEMCPY 1
#define HAVE_STDINT_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRCHR 1
#define HAVE_STRING_H 1
#define SIZEOF_DOUBLE 8
#define SIZEOF_FLOAT 4
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SHORT 2
#define SIZEOF_UNSIGNED_INT 4
#define SIZEOF_UNSIGNED_LONG 4
#define SIZEOF_UNSIGNED_LONG_LONG 8
#define SIZEOF_UNSIGNED_SHORT 2
#define LAME_LIBRARY_BUILD 1
#define TAKEHIRO_IEEE754_HACK 1
#define USE_FAST_LOG 1
#define ieee754_float32_t float
#define ieee754_float64_t double
#define PACKAGE "lame"
#define VERSION "3.100"
typedef long double ieee854_float80_t;
C
parts=(VbrTag bitstream encoder fft gain_analysis id3tag lame newmdct presets psymodel quantize quantize_pvt reservoir
  set_get tables takehiro util vbrquantize version)
sources=("${parts[@]/#/libmp3lame/}")
sources=("${sources[@]/%/.c}")
flags+=(-DHAVE_CONFIG_H -DNO_STDIO -Iinclude -Ilibmp3lame)
link lame 131072 "${sources[@]}" "$here/bridge.c"
