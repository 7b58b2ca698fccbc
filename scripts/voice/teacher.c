/* teacher VOICE TEXT LEXICON OUT: speaks each line of TEXT with a flite voice.
 *
 *   OUT-nnnn.wav  line n, 16 kHz
 *   OUT.txt       for each line "U", then a line for each phone: its name, and where it ends in seconds
 *
 * LEXICON is an addendum in flite's format. */

#include <flite/cst_utt_utils.h>
#include <flite/flite.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cst_voice *register_cmu_us_slt(const char *);
cst_voice *register_cmu_us_rms(const char *);
cst_voice *register_cmu_us_awb(const char *);

static cst_voice *voice_named(const char *name) {
  if (!strcmp(name, "slt")) return register_cmu_us_slt(NULL);
  if (!strcmp(name, "rms")) return register_cmu_us_rms(NULL);
  if (!strcmp(name, "awb")) return register_cmu_us_awb(NULL);
  fprintf(stderr, "no such voice: %s\n", name);
  exit(1);
}

static FILE *open_or_exit(const char *path, const char *mode) {
  FILE *file = fopen(path, mode);
  if (!file) {
    perror(path);
    exit(1);
  }
  return file;
}

int main(int count, char **arguments) {
  if (count != 5) {
    fprintf(stderr, "usage: teacher VOICE TEXT LEXICON OUT\n");
    return 1;
  }
  flite_init();
  cst_voice *voice = voice_named(arguments[1]);
  if (flite_voice_add_lex_addenda(voice, arguments[3]) != 0) fprintf(stderr, "lexicon not taken: %s\n", arguments[3]);

  char path[1024];
  snprintf(path, sizeof path, "%s.txt", arguments[4]);
  FILE *labels = open_or_exit(path, "wb");
  FILE *text = open_or_exit(arguments[2], "r");
  char line[4096];
  for (int number = 1; fgets(line, sizeof line, text); number++) {
    line[strcspn(line, "\n")] = 0;
    cst_utterance *utterance = flite_synth_text(line, voice);
    fprintf(labels, "U\n");
    for (cst_item *phone = utt_rel_head(utterance, "Segment"); phone; phone = item_next(phone))
      fprintf(labels, "%s %f\n", item_feat_string(phone, "name"), item_feat_float(phone, "end"));
    snprintf(path, sizeof path, "%s-%04d.wav", arguments[4], number);
    cst_wave_save_riff(utt_wave(utterance), path);
    delete_utterance(utterance);
  }
  fclose(labels);
  return 0;
}
