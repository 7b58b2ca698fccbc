/** A few choices side by side, of which one is chosen. */
export const Switch = <Option extends string>(props: {
  readonly name: string;
  /** For screen readers. */
  readonly label: string;
  /** With their labels. */
  readonly options: Readonly<Partial<Record<Option, string>>>;
  readonly value: Option;
  readonly onChange: (option: Option) => void;
}) => (
  <fieldset class="switch row">
    <legend class="hidden">{props.label}</legend>
    {(Object.keys(props.options) as Option[]).map((option) => (
      <label key={option}>
        <input
          type="radio"
          name={props.name}
          checked={option === props.value}
          onChange={() => props.onChange(option)}
        />
        {props.options[option]}
      </label>
    ))}
  </fieldset>
);
