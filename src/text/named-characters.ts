/**
 * Letters, marks and numbers that a voice of their script does not know: it says their names, as "Hebrew letter five B four",
 * also within a word. Measured with espeak-ng, each beside other letters and beside itself.
 */
const ranges = `
  370-373 376-377 37b-37d 37f 3cf 3d3-3d4 3d7-3d9 3db 3dd 3df 3e1 3f3 3f7-3f8 3fb-400 405 40a 40d 450 455 45a 45d
  460-481 48a-48f 492-529 52b 52d 52f 559 560 588 5ba 5bc-5bd 5bf 5c4-5c5 5ef-5f2 60b 613-61a 620 63b-63f 656-65f
  664 668 66e-66f 672-678 67a-67d 67f-685 687 689-690 692-697 699-6a8 6aa-6ae 6b0-6b9 6bb-6bd 6bf-6cb 6cd-6d1 6d3
  6d5-6dc 6e2-6e8 6ed-6ef 6f4 6f8 6fa-6fc 6ff 750-77f 8a0-8b4 8b6-8bd 8d4-8df 8e3-8e9 8f0-900 904 93a-93b 94e-94f
  955-957 971-980 9bd 9d7 9f0-9f1 9fc a01 a51 a74-a75 af9-afc b3d b55-b57 b71 bef bf8 c00 c04 c34 c3c-c3d c5a
  c5c-c5d c62-c63 c80-c81 c8c cbd cdc-cdd ce1-ce3 cf1-cf2 d00-d01 d04 d0c d29 d3a-d3c d4f d54-d56 d58-d5f d62-d63
  d6f d81 de6-de9 e26 e3a e4d 1033-1034 1050-1090 1097 109a-109d 10a0-10c5 10c7 10cd 10fd-10ff 1207 1247 1250-1256
  1258 125a-125d 1287 12af 12cf 12ef 130f 131f 1347 1380-138f 1c80-1c88 1cb9-1cba 1cbd-1cbf 1d26-1d2b 1fc0-1fc1
  2d00-2d25 2d27 2d2d 2d80-2d96 2da0-2da6 2da8-2dae 2db0-2db6 2db8-2dbe 2dc0-2dc6 2dc8-2dce 2dd0-2dd6 2dd8-2dde
  2de0-2dff 3043 3045 3047 3049 308e 3095-3096 309d-309e 30a3 30a5 30a7 30a9 30ee 30f5-30f7 30fd-30fe 31f0-31ff
  a640-a672 a674-a67d a67f-a69b a69e-a69f fb1e-fb1f fb2c-fb2d fb30 fb36 fb38-fb3a fb3c fb3e fb40-fb41 fb46-fb49
  fb4c-fb4e fb52-fb55 fb5a-fb65 fb6a-fb79 fb7e-fb87 fb96-fba9 fbb0-fbb1 fbd3-fbe7 fbec-fbed fbf0-fbf8 fdf0 fe73
  ff68-ff6b 10140-10174 1b002-1b11e 1b150-1b152 1b164-1b167 1e04a-1e04b 1e04e-1e050 1e069 1e06b-1e06d 1ee00-1ee03
  1ee05-1ee1f 1ee21-1ee22 1ee24 1ee27 1ee29-1ee32 1ee34-1ee37 1ee39 1ee3b 1ee42 1ee47 1ee49 1ee4b 1ee4d-1ee4f
  1ee51-1ee52 1ee54 1ee57 1ee59 1ee5b 1ee5d 1ee5f 1ee61-1ee62 1ee64 1ee67-1ee6a 1ee6c-1ee72 1ee74-1ee77
  1ee79-1ee7c 1ee7e 1ee80-1ee89 1ee8b-1ee9b 1eea1-1eea3 1eea5-1eea9 1eeab-1eebb
`;

const named = new RegExp(`[${ranges.replaceAll(/\w+/g, '\\u{$&}').replaceAll(/\s/g, '')}]`, 'u');

/** A capital is called as its small letter. */
export const isNamed = (character: string): boolean =>
  named.test(character) || named.test(character.toLowerCase());
