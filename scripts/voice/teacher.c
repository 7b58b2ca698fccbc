/* teacher VOICE TEXT LEXICON OUT [WAVES]: speaks each line of TEXT with a flite voice, and writes what the voice thought.
 *
 *   OUT.txt   for each line: "U <frames> <text>", then a line for each phone:
 *             "S <phone> <end in seconds> <vowel stress> <first in word> <punctuation after its word>"
 *   OUT.f32   for each 5 ms frame: F0, 25 mel-cepstra, 5 voicing strengths (31 floats)
 *   OUT.bands the five band-pass filters of the mixed excitation, a line each
 *   WAVES     a prefix: the audio of line n goes to WAVES-nnn.wav
 *
 * Taking the parameters from inside the synthesiser spares us the analysis of audio and its errors. */

#include <flite/cst_cg.h>
#include <flite/cst_ffeatures.h>
#include <flite/cst_utt_utils.h>
#include <flite/flite.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANNELS 26 /* F0 and 25 mel-cepstra */
#define STRENGTHS 5

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

static FILE *create(const char *prefix, const char *suffix) {
  char path[1024];
  snprintf(path, sizeof path, "%s%s", prefix, suffix);
  FILE *file = fopen(path, "wb");
  if (!file) {
    perror(path);
    exit(1);
  }
  return file;
}

static int is_zero(const char *name) { return !strcmp(name, "0"); }

static void write_phones(cst_utterance *utterance, FILE *out) {
  for (cst_item *phone = utt_rel_head(utterance, "Segment"); phone; phone = item_next(phone)) {
    const char *previous_phone = ffeature_string(phone, "R:SylStructure.p.name");
    const char *previous_syllable = ffeature_string(phone, "R:SylStructure.parent.p.name");
    const char *punctuation = ffeature_string(phone, "R:SylStructure.parent.parent.R:Token.parent.punc");
    /* A word of several tokens ("3.5") ends where its token does: only the token's last word is followed by the mark. */
    const char *next_word = ffeature_string(phone, "R:SylStructure.parent.parent.R:Token.n.name");
    fprintf(out, "S %s %f %s %d %s\n", item_feat_string(phone, "name"), item_feat_float(phone, "end"),
            ffeature_string(phone, "R:SylStructure.parent.stress"), is_zero(previous_phone) && is_zero(previous_syllable),
            is_zero(next_word) && *punctuation ? punctuation : "0");
  }
}

int main(int count, char **arguments) {
  if (count < 5) {
    fprintf(stderr, "usage: teacher VOICE TEXT LEXICON OUT [WAVES]\n");
    return 1;
  }
  flite_init();
  cst_voice *voice = voice_named(arguments[1]);
  if (flite_voice_add_lex_addenda(voice, arguments[3]) != 0) fprintf(stderr, "lexicon not taken: %s\n", arguments[3]);
  cst_cg_db *model = val_cg_db(feat_val(voice->features, "cg_db"));

  FILE *bands = create(arguments[4], ".bands");
  for (int band = 0; band < model->ME_num; band++, fputc('\n', bands))
    for (int tap = 0; tap < model->ME_order; tap++) fprintf(bands, "%g ", model->me_h[band][tap]);
  fclose(bands);

  FILE *text = fopen(arguments[2], "r");
  if (!text) {
    perror(arguments[2]);
    return 1;
  }
  FILE *labels = create(arguments[4], ".txt");
  FILE *frames = create(arguments[4], ".f32");
  char line[4096];
  for (int number = 1; fgets(line, sizeof line, text); number++) {
    line[strcspn(line, "\n")] = 0;
    cst_utterance *utterance = flite_synth_text(line, voice);
    cst_track *predicted = val_track(utt_feat_val(utterance, "param_track"));
    cst_track *strengths = val_track(utt_feat_val(utterance, "str_track"));
    cst_track *smooth = mlpg(predicted, model);
    fprintf(labels, "U %d %s\n", smooth->num_frames, line);
    write_phones(utterance, labels);
    for (int frame = 0; frame < smooth->num_frames; frame++) {
      fwrite(smooth->frames[frame], sizeof(float), CHANNELS, frames);
      fwrite(strengths->frames[frame], sizeof(float), STRENGTHS, frames);
    }
    if (count > 5) {
      char path[1024];
      snprintf(path, sizeof path, "%s-%03d.wav", arguments[5], number);
      cst_wave_save_riff(utt_wave(utterance), path);
    }
    delete_track(smooth);
    delete_utterance(utterance);
  }
  fclose(labels);
  fclose(frames);
  return 0;
}
