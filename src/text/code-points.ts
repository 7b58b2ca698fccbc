/** Code points of a text: what is charged for. Copies nothing. */
export const codePointCount = (text: string): number => {
  let count = 0;
  for (let at = 0; at < text.length; at += text.codePointAt(at)! > 0xff_ff ? 2 : 1) count++;
  return count;
};
