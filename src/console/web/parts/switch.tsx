/** A few choices side by side, of which one is chosen. */
export const Switch = <Option extends string>(props: {
  readonly name: string;
  /** For screen readers. */
  readonly label: string;
  readonly options: readonly Option[];
  readonly value: Option;
  readonly onChange: (option: Option) => void;
}) => (
  <fieldset class="switch">
    <legend class="hidden">{props.label}</legend>
    {props.options.map((option) => (
      <label key={option}>
        <input
          type="radio"
          name={props.name}
          checked={option === props.value}
          onChange={() => props.onChange(option)}
        />
        {option}
      </label>
    ))}
  </fieldset>
);
