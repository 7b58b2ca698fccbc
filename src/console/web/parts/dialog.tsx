import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { Form } from './form.js';
import { Icon } from './icon.js';

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

/** Asks before an act that cannot be undone. */
export const Confirm = (props: {
  readonly title: string;
  readonly act: string;
  readonly onAct: () => Promise<void>;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) => (
  <Dialog title={props.title} onClose={props.onClose}>
    <Form submit={props.act} danger onSubmit={props.onAct} onCancel={props.onClose}>
      <div class="stack">{props.children}</div>
    </Form>
  </Dialog>
);
