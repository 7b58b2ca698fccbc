import { useEffect, useId, useState } from 'preact/hooks';
import { Icon } from './icon.js';
import { Switch } from './switch.js';

/** Copies a text, and confirms it. Without permission it says what to do. */
export const CopyButton = (props: {
  readonly text: string;
  readonly label?: string;
  /** For screen readers: which one of several. */
  readonly of?: string;
}) => {
  const { text, label = 'Copy', of } = props;
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
      {of !== undefined && <span class="hidden"> of {of}</span>}
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

/** Programs that do the same, by their languages: one is shown. */
export const Programs = (props: {
  readonly label: string;
  readonly programs: Readonly<Record<string, string>>;
}) => {
  const { label, programs } = props;
  const names = Object.keys(programs);
  const [chosen, setChosen] = useState('');
  const name = names.includes(chosen) ? chosen : (names[0] ?? '');
  return (
    <>
      <Switch
        name={useId()}
        label="Language"
        options={Object.fromEntries(names.map((option) => [option, option]))}
        value={name}
        onChange={setChosen}
      />
      <CopyBlock text={programs[name]?.trim() ?? ''} label={`${label} in ${name}`} />
    </>
  );
};
