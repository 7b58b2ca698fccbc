/** What pages are built of. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Refusal } from '../../contract.js';
import { refresh, type Asked } from '../use-call.js';
import { Button } from './button.js';

/** When the page appears, the field with `autofocus` gets the focus, or the heading, so that a screen reader reads it. */
export const Page = (props: {
  readonly title: string;
  /** Before the title in the name of the browser's tab. */
  readonly part?: string;
  /** Small, above the title. */
  readonly above?: ComponentChildren;
  readonly lead?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children?: ComponentChildren;
}) => {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = [props.part, props.title, 'Syrinx'].filter((text) => text !== undefined).join(' – ');
  }, [props.part, props.title]);
  useEffect(() => {
    const field = document.querySelector<HTMLElement>('main [autofocus]');
    (field ?? heading.current)?.focus({ preventScroll: true });
  }, []);
  return (
    <>
      <header class="between">
        <div>
          {props.above}
          <h1 ref={heading} tabIndex={-1}>
            {props.title}
          </h1>
          {props.lead !== undefined && <p class="lead">{props.lead}</p>}
        </div>
        {props.actions !== undefined && <div class="row">{props.actions}</div>}
      </header>
      {props.children}
    </>
  );
};

/** What went wrong, and what to do. */
export const Problem = (props: {
  readonly refusal: Pick<Refusal, 'message'>;
  readonly onRetry?: () => void;
}) => (
  <div class="notice bad between">
    <span role="alert">{props.refusal.message}</span>
    {props.onRetry !== undefined && <Button kind="small" label="Try again" onClick={props.onRetry} />}
  </div>
);

/** For an empty list: what would be here, and what to do. */
export const Empty = (props: {
  readonly title: string;
  readonly children?: ComponentChildren;
  readonly action?: ComponentChildren;
}) => (
  <div class="empty stack">
    <strong>{props.title}</strong>
    {props.children !== undefined && <p>{props.children}</p>}
    {props.action}
  </div>
);

/** Becomes visible only after a while. */
export const Waiting = () => (
  <p class="waiting" role="status">
    Loading …
  </p>
);

/** An answer, or why there is none. An old answer stays beside the problem. */
export const Shown = <T,>(props: {
  readonly of: Asked<T>;
  readonly children: (answer: T) => ComponentChildren;
}) => {
  const { answer, problem } = props.of;
  const mayPass = ['unavailable', 'failed', 'tooManyAttempts'].includes(problem?.code ?? '');
  return (
    <>
      {problem !== null && <Problem refusal={problem} {...(mayPass && { onRetry: () => void refresh() })} />}
      {answer !== undefined ? props.children(answer) : problem === null && <Waiting />}
    </>
  );
};

export const Time = (props: { readonly ms: number; readonly format: (ms: number) => string }) => (
  <time dateTime={new Date(props.ms).toISOString()}>{props.format(props.ms)}</time>
);
