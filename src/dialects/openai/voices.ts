/** The names of OpenAI's voices, which its clients send by default, and our voice for each. */

/** The most similar of our voices, by their descriptions. */
const likeness: ReadonlyMap<string, string> = new Map([
  ['alloy', 'wren_conv'],
  ['ash', 'rook_conv'],
  ['ballad', 'finch'],
  ['cedar', 'rook'],
  ['coral', 'lark_conv'],
  ['echo', 'jay'],
  ['fable', 'finch'],
  ['marin', 'wren'],
  ['nova', 'lark'],
  ['onyx', 'heron'],
  ['sage', 'wren'],
  ['shimmer', 'lark'],
  ['verse', 'rook_conv'],
]);

/** @param configured names that the operator has mapped */
export const aliasesOf = (configured: ReadonlyMap<string, string>): readonly string[] => [
  ...new Set([...likeness.keys(), ...configured.keys()]),
];

/**
 * What the operator has mapped comes first, then a voice of this name. OpenAI's own names always have a voice: without the
 * usual one, the first that there is.
 *
 * @param speakerIds the voices that the caller may use
 * @returns an id, which may be unknown
 */
export const voiceFor = (
  name: string,
  configured: ReadonlyMap<string, string>,
  speakerIds: readonly string[],
): string => {
  const asked = configured.get(name) ?? name;
  const like = likeness.get(asked);
  if (like === undefined || speakerIds.includes(asked)) return asked;
  return speakerIds.includes(like) ? like : (speakerIds[0] ?? asked);
};
