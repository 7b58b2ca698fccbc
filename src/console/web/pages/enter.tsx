/** The pages for visitors who are not signed in: sign-in, claim, invitation. */
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { call } from '../call.js';
import { Field, Form, NewPasswordField, PasswordField, textOf } from '../parts/form.js';
import { Brand } from '../parts/icon.js';
import { Page, Shown } from '../parts/page.js';
import { useConsole } from '../session.js';
import { useCall } from '../use-call.js';
import { invitedAs } from './users.js';

const Entrance = (props: {
  readonly title: string;
  readonly lead?: ComponentChildren;
  readonly children?: ComponentChildren;
}) => {
  // Another link, opened in the same tab, changes only the fragment.
  useEffect(() => {
    const reload = () => location.reload();
    addEventListener('hashchange', reload);
    return () => removeEventListener('hashchange', reload);
  }, []);
  return (
    <main class="entrance stack">
      <Brand />
      <div class="card stack">
        <Page title={props.title} lead={props.lead}>
          {props.children}
        </Page>
      </div>
    </main>
  );
};

/** The token is in the fragment of the link, which browsers do not send. */
const tokenOfLink = (): string => location.hash.slice(1);

const passwordOf = (values: FormData, name: string): string => values.get(name) as string;

/** @param hint of the name */
const NameField = (props: { readonly label: string; readonly hint?: string }) => (
  <Field
    {...props}
    name="name"
    autofocus
    required
    maxLength={64}
    autocomplete="username"
    autocapitalize="none"
    spellcheck={false}
  />
);

/** Makes a user of the link, and signs in. */
const NewUser = (props: {
  readonly link: 'claim' | 'acceptInvitation';
  readonly token: string;
  readonly submit: string;
}) => {
  const { become } = useConsole();
  const join = async (values: FormData) => {
    const user = { name: textOf(values, 'name'), password: passwordOf(values, 'password') };
    become(await call(props.link, { token: props.token, ...user }), '/playground');
  };
  return (
    <Form submit={props.submit} onSubmit={join}>
      <NameField label="Your name" hint="You sign in with it." />
      <NewPasswordField label="Password" hint="At least 10 characters. Several unrelated words are best." />
    </Form>
  );
};

/** @param from where the whole link is */
const Incomplete = ({ from }: { readonly from: string }) => (
  <Entrance
    title="The link is incomplete"
    lead={`Copy the whole link, with the part after #, from the ${from}.`}
  />
);

export const SignInPage = () => {
  const { session, become } = useConsole();
  const to = new URLSearchParams(location.search).get('to') ?? '/';
  const signIn = async (values: FormData) => {
    const next = await call('signIn', {
      name: textOf(values, 'name'),
      password: passwordOf(values, 'password'),
    });
    become(next, /^\/(?!\/)/.test(to) ? to : '/');
  };
  if (!session.claimed) {
    return (
      <Entrance
        title="Not claimed yet"
        lead="The service wrote a one-time link when it started: on the terminal, or in the file console-link in its data folder. Open that link to become the operator."
      >
        <p class="hint">
          If the link has expired, make a new one: <code>npm run console -- link</code>
        </p>
      </Entrance>
    );
  }
  return (
    <Entrance title="Sign in">
      <Form submit="Sign in" onSubmit={signIn}>
        <NameField label="Name" />
        <PasswordField name="password" label="Password" />
      </Form>
    </Entrance>
  );
};

export const ClaimPage = () => {
  const { session } = useConsole();
  const token = tokenOfLink();
  if (token === '') return <Incomplete from="terminal or from the file console-link" />;
  return session.claimed ? (
    <Entrance
      title="Set a new password"
      lead="A new link gives an operator a new password. Enter the operator’s name."
    >
      <p class="hint">
        A link works once. If you have used this one, <a href="/sign-in">sign in</a>.
      </p>
      <NewUser link="claim" token={token} submit="Set password" />
    </Entrance>
  ) : (
    <Entrance title="Welcome" lead="Choose a name and a password. You become the operator of this service.">
      <NewUser link="claim" token={token} submit="Claim this console" />
    </Entrance>
  );
};

export const AcceptPage = () => {
  const token = tokenOfLink();
  const invitation = useCall('invitation', token === '' ? null : { token });
  if (token === '') return <Incomplete from="message you got" />;
  const { answer, problem } = invitation;
  if (problem?.code === 'notFound')
    return (
      <Entrance title="This invitation cannot be used" lead={`${problem.message}.`.replace('..', '.')}>
        <p class="muted">If you have joined with it, sign in with the name and password that you chose.</p>
        <a class="button primary" href="/sign-in">
          Sign in
        </a>
      </Entrance>
    );
  return (
    // Another key with the answer: the page appears again, and its first field gets the focus.
    <Entrance
      key={answer === undefined}
      title="You are invited"
      lead={
        answer === undefined ? undefined : `You become ${invitedAs(answer)}. Choose a name and a password.`
      }
    >
      <Shown of={invitation}>{() => <NewUser link="acceptInvitation" token={token} submit="Join" />}</Shown>
    </Entrance>
  );
};
