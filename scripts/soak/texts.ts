/** What is spoken in a soak: each text is of whole sentences, one space between its words, a full stop at its end. */
import { sentences } from '../rig-old/texts.js';

const replies = [
  'Sure.',
  'One moment, please.',
  'I have found three flights for you on Thursday. The first one leaves at ten past nine, and the last one at noon.',
  'That is a good question.',
  'Your order left the warehouse this morning, so it should be with you by Friday.',
  'Let me check that for you. It will only take a few seconds.',
  'The restaurant on the corner has a table for four at half past seven.',
  'I am sorry, I did not quite catch that. Could you say the number again, slowly, one digit at a time.',
  'Naïve façades and a café au lait, said Zoë, are what she remembers of the old town.',
  'The meeting was moved to the small room on the second floor because the large one is being painted this week.',
];

export const turnTexts: readonly string[] = [...sentences.filter((text) => /\.$/.test(text)), ...replies];
