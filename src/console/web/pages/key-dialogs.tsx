/** Creates a key and shows it once; changes the properties of one. */
import { useState } from 'preact/hooks';
import type { KeyChanges, KeyPropertiesView, KeyView } from '../../contract.js';
import { call, CallError } from '../call.js';
import { hostOf, WayLines, waysOf } from '../connect/ways.js';
import { Button } from '../parts/button.js';
import { CopyBlock, Programs } from '../parts/copy.js';
import { Ask, AskButton, Dialog } from '../parts/dialog.js';
import { changedIn, Field, numberOf, textOf, useProblemOf } from '../parts/form.js';
import { Shown } from '../parts/page.js';
import { useConsole } from '../session.js';
import { refresh, useVoices } from '../use-call.js';
import { SpeakingFields, speakingIn } from './speaking.js';

/** As `<input type="datetime-local">` has it: local time without a zone. */
const toLocal = (ms: number): string =>
  new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);

const Voices = ({ chosen }: { readonly chosen: readonly string[] | null }) => {
  const voices = useVoices();
  const [isAll, setIsAll] = useState(chosen === null);
  const problem = useProblemOf('voices');
  return (
    <fieldset class="field">
      <legend class="label">Voices</legend>
      <label class="row">
        <input type="checkbox" name="allVoices" checked={isAll} onChange={() => setIsAll(!isAll)} />
        All voices, including future ones
      </label>
      {!isAll && (
        <Shown of={voices}>
          {(all) => {
            const installed = all.map(({ id }) => id);
            const gone = (chosen ?? []).filter((id) => !installed.includes(id));
            return (
              <div class="choices">
                {[...installed, ...gone].map((id) => (
                  <label class="row">
                    <input
                      type="checkbox"
                      name="voices"
                      value={id}
                      defaultChecked={chosen?.includes(id) === true}
                    />
                    {id} {gone.includes(id) && <span class="badge">Not installed</span>}
                  </label>
                ))}
              </div>
            );
          }}
        </Shown>
      )}
      {problem !== null && <p class="field-problem">{problem}</p>}
    </fieldset>
  );
};

const PropertyFields = ({ of }: { readonly of: KeyPropertiesView | null }) => {
  const expiresAtMs = of?.expiresAtMs ?? null;
  return (
    <>
      <Field
        name="name"
        label="Name"
        maxLength={64}
        autocomplete="off"
        defaultValue={of?.name ?? ''}
        hint="The program that uses it, such as “phone line”."
      />
      <Field
        name="expiresAtMs"
        label="Expires"
        type="datetime-local"
        defaultValue={expiresAtMs === null ? '' : toLocal(expiresAtMs)}
        hint="From this time on the key is refused. Empty: it does not expire."
      />
      <Field
        name="creditLimit"
        label="Credit limit"
        type="number"
        min={0}
        step={1}
        inputMode="numeric"
        defaultValue={of?.creditLimit ?? ''}
        hint="How many credits this key can spend in total. Empty: as many as the account has."
      />
      <Voices chosen={of?.voices ?? null} />
      <SpeakingFields of={of} unset="As the account" />
    </>
  );
};

/** @throws {CallError} if no voice is chosen */
const propertiesOf = (values: FormData): Required<KeyChanges> => {
  const expires = textOf(values, 'expiresAtMs');
  const voices = values.has('allVoices') ? null : values.getAll('voices').map(String);
  if (voices?.length === 0)
    throw new CallError({
      code: 'badRequest',
      field: 'voices',
      message: 'Choose at least one voice, or all voices.',
    });
  return {
    name: textOf(values, 'name'),
    expiresAtMs: expires === '' ? null : Date.parse(expires),
    creditLimit: numberOf(values, 'creditLimit'),
    voices,
    ...speakingIn(values),
  };
};

/** The properties as the form shows them: the field of a time has minutes. */
const shownOf = (properties: KeyPropertiesView): KeyPropertiesView => {
  const { name, expiresAtMs, creditLimit, voices, normalizeText, speed, lexiconId } = properties;
  return {
    name,
    expiresAtMs: expiresAtMs === null ? null : Date.parse(toLocal(expiresAtMs)),
    creditLimit,
    voices: voices?.toSorted() ?? null,
    ...{ normalizeText, speed, lexiconId },
  };
};

/** The ways that most programs go. Connect has all. */
const waysShown = ['curl', 'WebSocket', 'Node', 'Python', 'LiveKit Agents'];

const NewKey = ({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) => {
  const { session } = useConsole();
  const [voice] = useVoices().answer ?? [];
  const ways = waysOf({ session, host: hostOf(session), voice: voice?.id ?? 'VOICE', key: secret });
  const shown = ways.filter(({ title }) => waysShown.includes(title));
  return (
    <div class="stack form">
      <p>Copy the key now. It is not shown again and cannot be recovered.</p>
      <CopyBlock text={secret} label="Key" />
      <h3>Connect</h3>
      <Programs
        label="With"
        programs={Object.fromEntries(shown.map((way) => [way.title, <WayLines {...way} />]))}
      />
      <p class="hint">
        <a href="/connect" target="_blank">
          Connect
        </a>{' '}
        has the other ways, in another tab.
      </p>
      <div class="row form-end">
        <Button kind="primary" label="I have copied the key" onClick={onClose} />
      </div>
    </div>
  );
};

export const CreateKey = (props: { readonly accountId: number; readonly onClose: () => void }) => {
  const { accountId, onClose } = props;
  const [secret, setSecret] = useState<string | null>(null);
  if (secret !== null) {
    return (
      <Dialog title="Your new key" key="new">
        <NewKey secret={secret} onClose={onClose} />
      </Dialog>
    );
  }
  return (
    <Ask
      title="Create key"
      act="Create key"
      onClose={onClose}
      onAct={async (values) => {
        setSecret((await call('createKey', { accountId, properties: propertiesOf(values) })).key);
        await refresh();
      }}
    >
      <PropertyFields of={null} />
    </Ask>
  );
};

export const ChangeKey = ({ shown }: { readonly shown: KeyView }) => {
  const name = shown.name || shown.prefix;
  return (
    <AskButton
      label="Change"
      of={name}
      kind="small"
      title={`Change ${name}`}
      act="Save"
      onAct={async (values) => {
        const changes = changedIn(shownOf(propertiesOf(values)), shownOf(shown));
        if (Object.keys(changes).length > 0) await call('changeKey', { keyId: shown.keyId, changes });
      }}
      done="Key changed."
    >
      <PropertyFields of={shown} />
    </AskButton>
  );
};
