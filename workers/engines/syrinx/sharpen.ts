/**
 * The frame net's envelopes change more slowly than a person's: stops open too softly. So each band's distance from its
 * mean over 45 ms grows.
 */

/** Rows at either side that a row's mean is taken over. */
export const sharpenRows = 4;
const sharpenShare = 0.4;
/** A band does not rise above this: the start of a loud vowel would have a peak, and the voice would have to be softer. */
const bandMax = -0.5;
const span = 2 * sharpenRows + 1;

/** @param bands rows of `width` values @returns the rows but `sharpenRows` at either side */
export const sharpened = (bands: Float32Array, width: number): Float32Array => {
  const result = new Float32Array(bands.length - 2 * sharpenRows * width);
  const sums = new Float64Array(width);
  for (let at = 0; at < (span - 1) * width; at++) sums[at % width]! += bands[at]!;
  for (let at = 0; at < result.length; at++) {
    const band = at % width;
    const sum = sums[band]! + bands[at + (span - 1) * width]!;
    const value = bands[at + sharpenRows * width]!;
    result[at] = Math.min(value + sharpenShare * (value - sum / span), Math.max(value, bandMax));
    sums[band] = sum - bands[at]!;
  }
  return result;
};
