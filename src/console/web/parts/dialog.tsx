import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { refresh } from '../use-call.js';
import { Form } from './form.js';
import { Icon } from './icon.js';
import { showToast } from './toast.js';

/** Modal. Escape closes it, and the focus returns to where it was. Without `onClose` only its own buttons close it. */
export const Dialog = (props: {
  readonly title: string;
  readonly onClose?: () => void;
  readonly children: ComponentChildren;
}) => {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    // By itself the button that closes it would have the focus.
    element?.querySelector<HTMLElement>('pre, input, .form-end button')?.focus();
    return () => {
      element?.close();
      // What had the focus before may be gone, such as the button of an empty list.
      queueMicrotask(() => {
        if (document.activeElement === document.body) document.querySelector('h1')?.focus();
      });
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose?.();
      }}
      // A browser closes a dialog at the second Escape, even if the page prevented the first.
      onKeyDown={(event) => {
        if (event.key === 'Escape' && props.onClose === undefined) event.preventDefault();
      }}
      onClose={({ currentTarget }) => {
        // This event comes later: also of a dialog that the page has removed.
        if (!currentTarget.isConnected) return;
        if (props.onClose === undefined) currentTarget.showModal();
        else props.onClose();
      }}
    >
      <div class="between">
        <h2 id={id}>{props.title}</h2>
        {props.onClose !== undefined && (
          <button type="button" class="button" aria-label="Close" onClick={props.onClose}>
            <Icon name="close" />
          </button>
        )}
      </div>
      {props.children}
    </dialog>
  );
};

/** Asks for what an act needs, does it, shows the new state, and says what was done. */
export const Ask = (props: {
  readonly title: string;
  /** The name of the act, on its button. */
  readonly act: string;
  readonly danger?: boolean;
  /** @returns a text: what was done, for the user; else the act shows that itself */
  readonly onAct: (values: FormData) => Promise<unknown>;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) => (
  <Dialog title={props.title} onClose={props.onClose}>
    <Form
      submit={props.act}
      danger={props.danger === true}
      onCancel={props.onClose}
      onSubmit={async (values) => {
        const done = await props.onAct(values);
        if (typeof done !== 'string') return;
        await refresh();
        showToast(done);
        props.onClose();
      }}
    >
      {props.children}
    </Form>
  </Dialog>
);

interface ButtonOptions {
  readonly label: string;
  /** For screen readers: which one of several. */
  readonly of?: string;
  /** Classes of the button. */
  readonly kind?: string;
}

/** A button with its dialog: each row of a table can have its own. */
export const DialogButton = (
  props: ButtonOptions & { readonly children: (close: () => void) => ComponentChildren },
) => {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        class={`button ${props.kind ?? ''}`}
        aria-label={props.of && `${props.label} ${props.of}`}
        onClick={() => setIsOpen(true)}
      >
        {props.label}
      </button>
      {isOpen && props.children(() => setIsOpen(false))}
    </>
  );
};

type AskOptions = Omit<Parameters<typeof Ask>[0], 'danger' | 'onClose'>;

/** Asks before an act that cannot be undone. */
export const ConfirmButton = ({ label, of, kind = 'small', ...ask }: ButtonOptions & AskOptions) => (
  <DialogButton label={label} kind={kind} {...(of !== undefined && { of })}>
    {(close) => <Ask danger {...ask} onClose={close} />}
  </DialogButton>
);
