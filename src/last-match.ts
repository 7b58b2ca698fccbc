/** What the runtime remembers of texts by itself. */

/**
 * Of the last regular expression that matched, a thread keeps the whole text that it was tried on (`RegExp.$_`), until
 * another matches. Called when something is over that has text, so that none lingers; takes some 30 ns.
 */
export const forgetLastMatch = (): void => {
  /^/.exec('');
};
