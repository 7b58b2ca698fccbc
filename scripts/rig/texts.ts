/** Texts that the rig has spoken. */

export const sentence = 'Good morning, the kettle is on and the paper is at the door.';

const paragraph =
  'The ferry leaves at seven, and nobody waits for the late ones. Bring a coat, because the wind on the upper deck ' +
  'is cold even in June. There is a small kitchen below, where they sell tea and toast until the far harbour comes ' +
  'into view. Most people stand at the rail and watch the gulls. When the engines slow down, you will hear a bell; ' +
  'then it is time to find your bags, and the people you came with. ';

/** Code points of the long texts. */
export const longTextCharacters = 5_000;

export const repeatTo = (text: string, characters: number): string =>
  text.repeat(Math.ceil(characters / text.length)).slice(0, characters);

export const longText = repeatTo(paragraph, longTextCharacters);

/** Nothing in it suggests where to cut. */
export const unpunctuatedText = repeatTo(
  paragraph
    .replace(/[^\w\s]/g, '')
    .replace(/\s+/g, ' ')
    .toLowerCase(),
  longTextCharacters,
);

/** About half a minute of speech. */
export const throughputText = paragraph;

/** About a minute of speech. */
export const minuteText = paragraph.repeat(2);

/** About nine seconds of speech: one reply of an assistant. */
export const replyText =
  'Of course, I can help you with that. The next train to the coast leaves in twenty minutes from the platform on ' +
  'your left. Would you like me to book a seat by the window?';

/** Short and long sentences; single spaces between their words. */
export const sentences = [sentence, replyText, ...(paragraph.match(/[A-Z][^.;]+[.;]/g) ?? [])];
