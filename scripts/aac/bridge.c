/* What syrinx calls of FFmpeg: an encoder of 16-bit mono samples to packets of AAC-LC. */
#include "libavcodec/avcodec.h"
#include "libavutil/log.h"
#include "libavutil/opt.h"

#define EXPORT(name) __attribute__((export_name(#name)))
#define FRAME_SAMPLES 1024
#define SAMPLE_MAX 32768.0f

typedef struct {
  AVCodecContext *codec;
  AVFrame *frame;
  AVPacket *packet;
} Encoder;

static short samples[FRAME_SAMPLES];

/* The samples of a frame going in. All encoders use the same room. */
EXPORT(samples) short *samples_in(void) { return samples; }

EXPORT(close) void close_encoder(Encoder *encoder) {
  avcodec_free_context(&encoder->codec);
  av_frame_free(&encoder->frame);
  av_packet_free(&encoder->packet);
  av_free(encoder);
}

static int configure(Encoder *encoder, int sample_rate_hz, int bitrate_kbps) {
  const AVCodec *aac = avcodec_find_encoder(AV_CODEC_ID_AAC);
  AVCodecContext *codec = encoder->codec = avcodec_alloc_context3(aac);
  AVFrame *frame = encoder->frame = av_frame_alloc();
  encoder->packet = av_packet_alloc();
  if (!codec || !frame || !encoder->packet) return -1;
  codec->sample_rate = frame->sample_rate = sample_rate_hz;
  codec->bit_rate = bitrate_kbps * 1000;
  codec->sample_fmt = frame->format = AV_SAMPLE_FMT_FLTP;
  codec->ch_layout = frame->ch_layout = (AVChannelLayout)AV_CHANNEL_LAYOUT_MONO;
  codec->time_base = (AVRational){1, sample_rate_hz};
  frame->nb_samples = FRAME_SAMPLES;
  if (av_opt_set(codec->priv_data, "aac_coder", "fast", 0) < 0) return -1;
  if (avcodec_open2(codec, aac, NULL) < 0 || codec->frame_size != FRAME_SAMPLES) return -1;
  return av_frame_get_buffer(frame, 0);
}

/* Returns 0 without memory, or if FFmpeg does not take the format. */
EXPORT(open) Encoder *open_encoder(int sample_rate_hz, int bitrate_kbps) {
  av_log_set_level(AV_LOG_QUIET);
  Encoder *encoder = av_mallocz(sizeof *encoder);
  if (encoder && configure(encoder, sample_rate_hz, bitrate_kbps) < 0) {
    close_encoder(encoder);
    return NULL;
  }
  return encoder;
}

/* Encodes one frame. Returns the bytes that come out, 0 if none do yet, or a negative error. */
EXPORT(encode) int encode(Encoder *encoder) {
  if (av_frame_make_writable(encoder->frame) < 0) return -1;
  float *plane = (float *)encoder->frame->data[0];
  for (int i = 0; i < FRAME_SAMPLES; i++) plane[i] = samples[i] / SAMPLE_MAX;
  if (avcodec_send_frame(encoder->codec, encoder->frame) < 0) return -1;
  av_packet_unref(encoder->packet);
  int result = avcodec_receive_packet(encoder->codec, encoder->packet);
  if (result == AVERROR(EAGAIN)) return 0;
  return result < 0 ? result : encoder->packet->size;
}

/* Where these bytes are, until the next frame. */
EXPORT(out) unsigned char *bytes_out(Encoder *encoder) { return encoder->packet->data; }
