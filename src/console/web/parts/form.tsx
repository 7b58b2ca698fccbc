/** Forms: they send once, show an error at the field that is wrong, and keep the input. */
import { createContext, type ComponentChildren, type JSX } from 'preact';
import { useContext, useEffect, useId, useRef, useState } from 'preact/hooks';
import type { Refusal } from '../../contract.js';
import { refresh, toRefusal } from '../use-call.js';
import { Button } from './button.js';
import { Problem } from './page.js';

interface FormState {
  readonly refusal: Refusal | null;
  readonly running: boolean;
}
const FormContext = createContext<FormState>({ refusal: null, running: false });

/** The server names a field by its path, such as `changes.name`. */
const fieldOf = (refusal: Refusal | null): string | undefined => refusal?.field?.split('.').at(-1);

/** Runs one act at a time. */
export const useAct = (): FormState & { readonly act: (work: () => Promise<void>) => Promise<void> } => {
  const [state, setState] = useState<FormState>({ refusal: null, running: false });
  const running = useRef(false);
  const act = async (work: () => Promise<void>): Promise<void> => {
    if (running.current) return;
    running.current = true;
    setState({ refusal: null, running: true });
    let refusal: Refusal | null = null;
    try {
      await work();
    } catch (error) {
      refusal = toRefusal(error);
      // Another user has changed it: show the current state.
      if (refusal.code === 'conflict' || refusal.code === 'notFound') void refresh();
    }
    running.current = false;
    setState({ refusal, running: false });
  };
  return { ...state, act };
};

export const Form = (props: {
  readonly submit: string;
  readonly danger?: boolean;
  readonly onSubmit: (values: FormData) => Promise<void>;
  /** Gives the form a second button. */
  readonly onCancel?: () => void;
  readonly children?: ComponentChildren;
}) => {
  const { act, refusal, running } = useAct();
  const form = useRef<HTMLFormElement>(null);
  const field = fieldOf(refusal);
  const isShown = field !== undefined && Boolean(form.current?.elements.namedItem(field));
  useEffect(() => {
    const found = field === undefined ? null : form.current?.elements.namedItem(field);
    const element = found instanceof RadioNodeList ? found[0] : found;
    if (element instanceof HTMLElement) element.focus();
  }, [refusal]);
  return (
    <FormContext.Provider value={{ refusal, running }}>
      <form
        ref={form}
        class="stack form"
        onSubmit={(event) => {
          event.preventDefault();
          const values = new FormData(event.currentTarget);
          void act(() => props.onSubmit(values));
        }}
      >
        {refusal !== null && !isShown && <Problem refusal={refusal} />}
        {props.children}
        <div class="row form-end">
          {props.onCancel !== undefined && <Button label="Cancel" onClick={props.onCancel} />}
          <button
            type="submit"
            class={`button ${props.danger === true ? 'danger' : 'primary'}`}
            aria-disabled={running}
          >
            {props.submit}
          </button>
        </div>
      </form>
    </FormContext.Provider>
  );
};

/** The server's error for a field of this form. */
export const useProblemOf = (name: string): string | null => {
  const { refusal } = useContext(FormContext);
  return refusal !== null && fieldOf(refusal) === name ? refusal.message : null;
};

/** A label with its control. The control gets the ids that tie hint and problem to it. */
const Labelled = (props: {
  readonly name: string;
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly children: (control: {
    readonly id: string;
    readonly name: string;
    readonly 'aria-describedby': string | undefined;
    readonly 'aria-invalid': boolean | undefined;
  }) => ComponentChildren;
}) => {
  const id = useId();
  const problem = useProblemOf(props.name);
  const described = [props.hint !== undefined && `${id}-hint`, problem !== null && `${id}-problem`];
  return (
    <div class="field">
      <label class="label" for={id}>
        {props.label}
      </label>
      {props.children({
        id,
        name: props.name,
        'aria-describedby': described.filter((part) => part !== false).join(' ') || undefined,
        'aria-invalid': problem !== null || undefined,
      })}
      {problem !== null && (
        <p class="field-problem" id={`${id}-problem`}>
          {problem}
        </p>
      )}
      {props.hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {props.hint}
        </p>
      )}
    </div>
  );
};

interface LabelOptions {
  readonly name: string;
  readonly label: string;
  readonly hint?: ComponentChildren;
}

export const Field = ({ name, label, hint, ...input }: LabelOptions & JSX.IntrinsicElements['input']) => (
  <Labelled name={name} label={label} hint={hint}>
    {(control) => <input {...input} {...control} />}
  </Labelled>
);

export const TextField = ({
  name,
  label,
  hint,
  ...area
}: LabelOptions & JSX.IntrinsicElements['textarea']) => (
  <Labelled name={name} label={label} hint={hint}>
    {(control) => <textarea {...area} {...control} />}
  </Labelled>
);

/** Values with their labels, or values that are their labels. A list, if numbers are among the values: a record would put them first. */
export type Options<Value extends string> = Readonly<Record<Value, string>> | Listed<Value>;
type Listed<Value extends string> = readonly (Value | readonly [Value, string])[];
const isListed = <Value extends string>(options: Options<Value>): options is Listed<Value> =>
  Array.isArray(options);

export const entriesOf = <Value extends string>(options: Options<Value>) =>
  isListed(options)
    ? options.map((option) => (typeof option === 'string' ? ([option, option] as const) : option))
    : (Object.entries(options) as [Value, string][]);

/** A labelled choice of one of a few values. */
export const Choice = <Value extends string>(
  props: Omit<LabelOptions, 'name'> & {
    readonly name?: string;
    readonly options: Options<Value>;
    readonly value: Value;
    /** Absent: the form reads it. */
    readonly onChange?: (value: Value) => void;
  },
) => {
  const { hint, label, name = '', onChange, options } = props;
  return (
    <Labelled name={name} label={label} hint={hint}>
      {(control) => (
        <select {...control} onChange={({ currentTarget }) => onChange?.(currentTarget.value as Value)}>
          {entriesOf(options).map(([value, text]) => (
            // A value of the select itself would be set again with each drawing of a form.
            <option key={value} value={value} selected={value === props.value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
};

export const PasswordField = (props: { readonly name: string; readonly label: string }) => (
  <Field {...props} type="password" required maxLength={256} autocomplete="current-password" />
);

export const NewPasswordField = (props: { readonly label: string; readonly hint: string }) => (
  <Field
    {...props}
    name="password"
    type="password"
    required
    minLength={10}
    maxLength={256}
    autocomplete="new-password"
  />
);

export const textOf = (values: FormData, name: string): string => {
  const value = values.get(name);
  return typeof value === 'string' ? value.trim() : '';
};

/** Only what this form changed: another user may have changed the rest. */
export const changedIn = <Fields extends object>(now: Fields, before: Fields): Partial<Fields> =>
  Object.fromEntries(
    Object.entries(now).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name as keyof Fields]),
    ),
  ) as Partial<Fields>;

/** `null` for an empty field. */
export const numberOf = (values: FormData, name: string): number | null => {
  const text = textOf(values, name);
  return text === '' ? null : Number(text);
};
