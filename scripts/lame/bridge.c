/* What syrinx calls of LAME: an encoder of 16-bit mono samples at a constant bitrate. */
#include <stdlib.h>
#include "lame.h"

#define EXPORT(name) __attribute__((export_name(#name)))

/* Room for samples going in and bytes coming out: their addresses are asked for once. */
EXPORT(allocate) void *allocate(int bytes) { return malloc(bytes); }

/* `gain` undoes that LAME lowers the volume. Returns 0 if LAME does not take the format. */
EXPORT(open) lame_global_flags *open_encoder(int sample_rate_hz, int bitrate_kbps, int quality, float gain) {
  lame_global_flags *lame = lame_init();
  if (lame == NULL) return NULL;
  lame_set_num_channels(lame, 1);
  lame_set_mode(lame, MONO);
  lame_set_in_samplerate(lame, sample_rate_hz);
  lame_set_out_samplerate(lame, sample_rate_hz);
  lame_set_VBR(lame, vbr_off);
  lame_set_brate(lame, bitrate_kbps);
  lame_set_quality(lame, quality);
  lame_set_scale(lame, gain);
  lame_set_bWriteVbrTag(lame, 0);
  lame_set_write_id3tag_automatic(lame, 0);
  if (lame_init_params(lame) == 0) return lame;
  lame_close(lame);
  return NULL;
}

/* Both return the number of bytes, or a negative error. */
EXPORT(encode) int encode(lame_global_flags *lame, const short *samples, int count, unsigned char *out, int out_max) {
  return lame_encode_buffer(lame, samples, samples, count, out, out_max);
}
EXPORT(finish) int finish(lame_global_flags *lame, unsigned char *out, int out_max) {
  return lame_encode_flush(lame, out, out_max);
}

EXPORT(close) void close_encoder(lame_global_flags *lame) { lame_close(lame); }
