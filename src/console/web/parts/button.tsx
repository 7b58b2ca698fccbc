import { Icon, type IconName } from './icon.js';

export interface ButtonOptions {
  readonly label: string;
  /** For screen readers, where the label does not say which one of several. */
  readonly name?: string | undefined;
  /** Classes of the button. */
  readonly kind?: string;
  readonly icon?: IconName;
  /** It does nothing now. Unlike a disabled button it keeps the focus. */
  readonly isOff?: boolean;
}

export const Button = (props: ButtonOptions & { readonly onClick: () => unknown }) => (
  <button
    type="button"
    class={`button ${props.kind ?? ''}`}
    aria-label={props.name}
    aria-disabled={props.isOff}
    onClick={() => void props.onClick()}
  >
    {props.icon !== undefined && <Icon name={props.icon} />}
    {props.label}
  </button>
);
