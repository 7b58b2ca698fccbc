/** Filters of a list. The address has them: see `useQuery`. */
import { useEffect, useId, useRef } from 'preact/hooks';
import { csvRecord } from '../../../api/csv.js';
import { Icon } from './icon.js';

/** While a user types, nothing is asked. */
const restMs = 250;

export const Search = (props: {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}) => {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => () => clearTimeout(timer.current), []);
  // The way back changes it from outside.
  useEffect(() => {
    if (input.current !== null && input.current.value.trim() !== props.value)
      input.current.value = props.value;
  }, [props.value]);
  return (
    <input
      ref={input}
      class="search"
      type="search"
      aria-label={props.label}
      placeholder={props.label}
      defaultValue={props.value}
      maxLength={100}
      spellcheck={false}
      onInput={({ currentTarget: { value } }) => {
        clearTimeout(timer.current);
        timer.current = setTimeout(() => props.onChange(value.trim()), restMs);
      }}
    />
  );
};

/** Values with their labels. A list, if numbers are among the values: a record would put them first. */
type Options<Value extends string> = Readonly<Record<Value, string>> | Listed<Value>;
type Listed<Value extends string> = readonly (readonly [Value, string])[];
const isListed = <Value extends string>(options: Options<Value>): options is Listed<Value> =>
  Array.isArray(options);

/** A labelled choice of one of a few values. */
export const Choice = <Value extends string>(props: {
  readonly label: string;
  readonly options: Options<Value>;
  readonly value: Value;
  readonly onChange: (value: Value) => void;
}) => {
  const { options } = props;
  const entries = isListed(options) ? options : Object.entries<string>(options);
  const id = useId();
  return (
    <div class="field">
      <label class="label" for={id}>
        {props.label}
      </label>
      <select
        id={id}
        value={props.value}
        onChange={({ currentTarget }) => props.onChange(currentTarget.value as Value)}
      >
        {entries.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
};

/** Saves a file that the page makes. */
export const saveCsv = (name: string, rows: readonly (readonly (string | number)[])[]): void => {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([rows.map(csvRecord).join('')], { type: 'text/csv' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};

/** @param href of a file that the server makes, or `onClick` of one that the page makes */
export const CsvLink = (props: { readonly href: string } | { readonly onClick: () => void }) => {
  const content = (
    <>
      <Icon name="download" />
      CSV
    </>
  );
  return 'href' in props ? (
    <a class="button" href={props.href} download>
      {content}
    </a>
  ) : (
    <button type="button" class="button" onClick={props.onClick}>
      {content}
    </button>
  );
};
