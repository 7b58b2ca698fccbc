/** Code points of a text: the unit of charging. Copies nothing. */
export const codePointCount = (text: string): number => {
  // Most texts have no surrogate, and a search for one is ten times as fast as a loop.
  if (!/[\ud800-\udbff]/.test(text)) return text.length;
  let count = 0;
  for (let at = 0; at < text.length; at += text.codePointAt(at)! > 0xff_ff ? 2 : 1) count++;
  return count;
};

/** The end of a slice of at most `units` UTF-16 units: never within a surrogate pair, whose halves would count as two. */
export const endOfSlice = (text: string, units: number): number => {
  const unit = text.charCodeAt(units - 1);
  return text.length > units && unit >= 0xd800 && unit < 0xdc00 ? units - 1 : units;
};
