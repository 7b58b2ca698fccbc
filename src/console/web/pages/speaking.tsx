/** What a key or an account sets for speech: as fields of a form, and in words. */
import type { SpeakingChanges, SpeakingDefaults } from '../../contract.js';
import { formatRatio } from '../format.js';
import { Choice, Field, numberOf, textOf } from '../parts/form.js';
import { useCall } from '../use-call.js';

/** @param unset what holds if nothing is set, such as “As the account” */
export const SpeakingFields = (props: { readonly of: SpeakingDefaults | null; readonly unset: string }) => {
  const { of, unset } = props;
  const lexicons = useCall('lexicons', {});
  const own = of?.lexiconId ?? null;
  const names = new Set([...(lexicons.answer ?? []), ...(own === null ? [] : [own])]);
  return (
    <>
      <Choice
        name="normalizeText"
        label="Numbers and dates"
        hint="Where a request does not say it: on WebSockets and the webhook no request can."
        options={{ '': unset, on: 'Spoken as words', off: 'As they are written' }}
        value={normalizeValue(of)}
      />
      <Field
        name="speed"
        label="Speed"
        type="number"
        min={0.5}
        max={2}
        step={0.01}
        inputMode="decimal"
        defaultValue={of?.speed ?? ''}
        hint={`${formatRatio(1.1)} is a tenth faster than the voice’s own pace. Empty: ${unset[0]!.toLowerCase()}${unset.slice(1)}.`}
      />
      <Choice
        // The names may come later than the form.
        key={names.size}
        name="lexiconId"
        label="Lexicon"
        hint="Its words come before those of all other lexicons. Lexicons to choose from are folders in lexicons/named."
        options={[['', unset], ...names]}
        value={own ?? ''}
      />
    </>
  );
};

const normalizeValue = (of: SpeakingDefaults | null): '' | 'on' | 'off' =>
  of === null || of.normalizeText === null ? '' : of.normalizeText ? 'on' : 'off';

export const speakingIn = (values: FormData): Required<SpeakingChanges> => {
  const normalize = textOf(values, 'normalizeText');
  return {
    normalizeText: normalize === '' ? null : normalize === 'on',
    speed: numberOf(values, 'speed'),
    lexiconId: textOf(values, 'lexiconId') || null,
  };
};

/** What is set, a phrase each. */
export const speakingWords = ({ normalizeText, speed, lexiconId }: SpeakingDefaults): string[] => [
  ...(normalizeText === null ? [] : [normalizeText ? 'Numbers as words' : 'Numbers as written']),
  ...(speed === null ? [] : [`Speed ${formatRatio(speed)}`]),
  ...(lexiconId === null ? [] : [`Lexicon ${lexiconId}`]),
];
