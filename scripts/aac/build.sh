#!/usr/bin/env bash
# Builds workers/audio/aac.wasm from the source of FFmpeg, unchanged, for those who want to check or replace that file.
# Debian: apt-get install clang-19 lld-19 binutils make wasi-libc libclang-rt-19-dev-wasm32, and `apt-get source --download-only ffmpeg`.
#
#   scripts/aac/build.sh ffmpeg_5.1.9.orig.tar.xz
. "$(dirname "$(realpath "$0")")/../wasm.sh"
unpack "${1:?the source of FFmpeg, ffmpeg_5.1.9.orig.tar.xz}" d9b593bb2ba93d4b50f74177e0cdcd41747e708596367deed0c30348a71dd176
# WASI has no names for temporary files. The function that wants one is compiled, and never called.
echo '#define tempnam(folder, prefix) NULL' >wasi.h
flags+=(-include "$work/wasi.h")
# Without --enable-gpl: all of it is under the LGPL.
./configure --enable-cross-compile --target-os=none --arch=x86_32 --cc="$compiler" --extra-cflags="${flags[*]}" \
  --ranlib=true \
  --disable-all --disable-everything --disable-autodetect --disable-asm --disable-debug --disable-pthreads \
  --disable-runtime-cpudetect --enable-avcodec --enable-encoder=aac >/dev/null
make -j"$(nproc)" libavcodec/libavcodec.a libavutil/libavutil.a >/dev/null
link aac 262144 -lwasi-emulated-process-clocks "$here/bridge.c" libavcodec/*.o libavutil/*.o
