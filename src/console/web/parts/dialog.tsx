import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { refresh } from '../use-call.js';
import { Button, type ButtonOptions } from './button.js';
import { CopyBlock } from './copy.js';
import { Form } from './form.js';
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
    const first =
      element?.querySelector('[autofocus]') ?? element?.querySelector('pre, input, .form-end button');
    if (first instanceof HTMLElement) first.focus();
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
        {props.onClose !== undefined && <Button label="" icon="close" name="Close" onClick={props.onClose} />}
      </div>
      {props.children}
    </dialog>
  );
};

/** Shows once what cannot be seen again, to copy it. */
export const SecretDialog = (props: {
  readonly title: string;
  /** Of the secret. */
  readonly label: string;
  readonly secret: string;
  /** The name of a button that closes the dialog. */
  readonly close?: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) => (
  <Dialog title={props.title} onClose={props.onClose}>
    <p>{props.children}</p>
    <CopyBlock text={props.secret} label={props.label} />
    {props.close !== undefined && (
      <div class="row form-end">
        <Button kind="primary" label={props.close} onClick={props.onClose} />
      </div>
    )}
  </Dialog>
);

/** Asks for what an act needs, does it, shows the new state, and says what was done. */
export const Ask = (props: {
  readonly title: string;
  /** The name of the act, on its button. */
  readonly act: string;
  readonly danger?: boolean;
  readonly onAct: (values: FormData) => Promise<unknown>;
  /** What was done, for the user; absent: the act shows that itself. */
  readonly done?: string | ((values: FormData) => string);
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) => (
  <Dialog title={props.title} onClose={props.onClose}>
    <Form
      submit={props.act}
      danger={props.danger === true}
      onCancel={props.onClose}
      onSubmit={async (values) => {
        await props.onAct(values);
        if (props.done === undefined) return;
        await refresh();
        showToast(typeof props.done === 'string' ? props.done : props.done(values));
        props.onClose();
      }}
    >
      {props.children}
    </Form>
  </Dialog>
);

interface OpenerOptions extends Pick<ButtonOptions, 'label' | 'kind'> {
  /** For screen readers: which one of several. */
  readonly of?: string;
}

/** A button with its dialog: each row of a table can have its own. */
export const DialogButton = (
  props: OpenerOptions & { readonly children: (close: () => void) => ComponentChildren },
) => {
  const { children, of, ...look } = props;
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <Button {...look} name={of && `${look.label} ${of}`} onClick={() => setIsOpen(true)} />
      {isOpen && children(() => setIsOpen(false))}
    </>
  );
};

/** A button that asks. The act has its name, if it has no other. */
export const AskButton = (
  props: OpenerOptions & Omit<Parameters<typeof Ask>[0], 'act' | 'onClose'> & { readonly act?: string },
) => {
  const { kind = '', label, of, act = label, ...ask } = props;
  return (
    <DialogButton label={label} kind={kind} {...(of !== undefined && { of })}>
      {(close) => <Ask {...ask} act={act} onClose={close} />}
    </DialogButton>
  );
};

/** Asks before an act that cannot be undone. */
export const ConfirmButton = (props: Omit<Parameters<typeof AskButton>[0], 'danger'>) => (
  <AskButton kind="small" {...props} danger />
);
