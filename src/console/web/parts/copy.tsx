import type { ComponentChildren } from 'preact';
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

/** Ways to do the same, such as programs, by their names: one is shown. */
export const Programs = (props: {
  readonly label: string;
  readonly programs: Readonly<Record<string, ComponentChildren>>;
}) => {
  const { label, programs } = props;
  const names = Object.keys(programs);
  const [name, setName] = useState(names[0]!);
  return (
    <>
      <Switch
        name={useId()}
        label={label}
        options={Object.fromEntries(names.map((option) => [option, option]))}
        value={name}
        onChange={setName}
      />
      {programs[name]}
    </>
  );
};

/** Gives the browser a file. */
export const saveFile = (name: string, file: Blob): void => {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  // The browser has taken the file by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
};
