import { useEffect, useState } from 'preact/hooks';
import { Icon } from './icon.js';

/** Copies a text, and confirms it. Without permission it says what to do. */
export const CopyButton = ({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) => {
  const [said, setSaid] = useState<'' | 'Copied' | 'Select the text and copy it'>('');
  useEffect(() => {
    if (said === '') return;
    const timer = setTimeout(() => setSaid(''), 3_000);
    return () => clearTimeout(timer);
  }, [said]);
  // `navigator.clipboard` is missing where the page came over plain HTTP from another machine.
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid('Copied');
    } catch {
      setSaid('Select the text and copy it');
    }
  };
  return (
    <button type="button" class="button small" onClick={() => void copy()}>
      <Icon name={said === 'Copied' ? 'done' : 'copy'} />
      <span aria-live="polite">{said === '' ? label : said}</span>
    </button>
  );
};

/** A text to copy, such as a key or lines of code. */
export const CopyBlock = (props: { readonly text: string; readonly label: string }) => (
  <div class="copy-block row">
    <pre tabIndex={0} aria-label={props.label}>
      {props.text}
    </pre>
    <CopyButton text={props.text} />
  </div>
);
