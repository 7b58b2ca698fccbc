/** Filters of a list: for each its value, its field, and what sets it. The address has them: see `useQuery`. */
import { useEffect, useRef } from 'preact/hooks';
import { csvRecord } from '../../../api/csv.js';
import { useQuery } from '../route.js';
import { Button } from './button.js';
import { saveFile } from './copy.js';
import { Choice, entriesOf, type Options } from './form.js';
import { Icon } from './icon.js';

/** While a user types, nothing is asked. */
const restMs = 250;

const Search = (props: {
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

export const useSearch = (label: string) => {
  const [search, setSearch] = useQuery<string>('search', '');
  return [search, <Search label={label} value={search} onChange={setSearch} />, setSearch] as const;
};

/** @param fallback leaves no trace in the address: the first option, if it is absent */
export const useChoice = <Value extends string>(
  name: string,
  label: string,
  options: Options<Value>,
  fallback?: Value,
) => {
  const values = entriesOf(options).map(([value]) => value);
  const [value, setValue] = useQuery(name, fallback ?? values[0]!, values);
  return [
    value,
    <Choice label={label} options={options} value={value} onChange={setValue} />,
    setValue,
  ] as const;
};

/** Saves a file that the page makes. */
export const saveCsv = (name: string, rows: readonly (readonly (string | number)[])[]): void =>
  saveFile(name, new Blob([rows.map(csvRecord).join('')], { type: 'text/csv' }));

/** @param href of a file that the server makes, or `onClick` of one that the page makes */
export const CsvLink = (props: { readonly href: string } | { readonly onClick: () => void }) => {
  const look = { icon: 'download', label: 'CSV' } as const;
  return 'href' in props ? (
    <a class="button" href={props.href} download>
      <Icon name={look.icon} />
      {look.label}
    </a>
  ) : (
    <Button {...look} onClick={props.onClick} />
  );
};
