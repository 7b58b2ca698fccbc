/** The lists of the API: voices, models, and the credit that is left. */
import type { Standing } from '../../accounts/admission.js';
import type { ActiveKey } from '../../store/store.js';
import { primaryLanguage } from '../../text/language.js';
import type { Query } from '../../front/query.js';

/** Those of a voice here are always the same. */
export const voiceSettings = JSON.stringify({
  stability: 0.5,
  similarity_boost: 0.75,
  style: 0,
  use_speaker_boost: false,
  speed: 1,
});

/** Only the fields that its clients read, or that their types require. @param name of our voice, if the id is another */
const voiceOf = (voiceId: string, name = voiceId) => ({
  voice_id: voiceId,
  name,
  category: 'premade',
  labels: {},
  description: null,
  preview_url: null,
  available_for_tiers: [],
  high_quality_base_model_ids: [],
  settings: null,
});

export const voiceView = (voiceId: string, name: string): string => JSON.stringify(voiceOf(voiceId, name));

export const voiceList = (voiceIds: readonly string[]): string =>
  JSON.stringify({ voices: voiceIds.map((id) => voiceOf(id)) });

/** The second version of the list has pages. All voices fit one. */
export const voicePage = (voiceIds: readonly string[], query: Query): string => {
  const search = (query.get('search') ?? '').toLowerCase();
  const voices = voiceIds.filter((id) => id.toLowerCase().includes(search)).map((id) => voiceOf(id));
  return JSON.stringify({ voices, has_more: false, total_count: voices.length, next_page_token: null });
};

/** Any model id is accepted, and none makes a difference: these are the ones that its clients ask for. */
const modelIds = ['eleven_flash_v2_5', 'eleven_turbo_v2_5', 'eleven_multilingual_v2'];

const namesOfLanguages = new Intl.DisplayNames('en', { type: 'language' });

/** @param languages of the voices, such as `de-DE` @param charactersMax of a request */
export const modelList = (languages: readonly string[], charactersMax: number): string => {
  const ids = [...new Set(languages.map(primaryLanguage))].sort();
  // A pack may name a language that the runtime does not know.
  const nameOf = (id: string) => (/^[a-z]{2,3}$/.test(id) ? namesOfLanguages.of(id) : undefined) ?? id;
  const spoken = ids.map((id) => ({ language_id: id, name: nameOf(id) }));
  return JSON.stringify(
    modelIds.map((modelId) => ({
      model_id: modelId,
      name: modelId,
      can_do_text_to_speech: true,
      can_do_voice_conversion: false,
      can_be_finetuned: false,
      can_use_style: false,
      can_use_speaker_boost: false,
      serves_pro_voices: false,
      token_cost_factor: 1,
      languages: spoken,
      description: 'A voice of this service; the model makes no difference.',
      requires_alpha_access: false,
      max_characters_request_free_user: charactersMax,
      max_characters_request_subscribed_user: charactersMax,
      maximum_text_length_per_request: charactersMax,
    })),
  );
};

/** A key that is not metered: the largest whole number that every client can hold. */
const UNLIMITED = Number.MAX_SAFE_INTEGER;

const subscriptionOf = ({ usedCharacters, leftCharacters }: Standing) => {
  const characterCount = Math.min(UNLIMITED, usedCharacters);
  return {
    tier: 'self_hosted',
    status: leftCharacters > 0 ? 'active' : 'past_due',
    character_count: characterCount,
    character_limit: Math.min(UNLIMITED, characterCount + Math.max(0, leftCharacters)),
    max_character_limit_extension: null,
    max_credit_limit_extension: 0,
    can_extend_character_limit: false,
    allowed_to_extend_character_limit: false,
    voice_slots_used: 0,
    professional_voice_slots_used: 0,
    professional_voice_slots_used_in_workspace: 0,
    voice_limit: 0,
    voice_add_edit_counter: 0,
    professional_voice_limit: 0,
    can_extend_voice_limit: false,
    can_use_instant_voice_cloning: false,
    can_use_professional_voice_cloning: false,
    current_overage: { amount: '0', currency: 'usd' },
    has_open_invoices: false,
    open_invoices: [],
  };
};

export const subscription = (standing: Standing): string => JSON.stringify(subscriptionOf(standing));

/** Its users are the accounts of this service. */
export const user = (standing: Standing, { accountId }: ActiveKey): string =>
  JSON.stringify({
    user_id: String(accountId),
    workspace_id: String(accountId),
    subscription: subscriptionOf(standing),
    is_new_user: false,
    can_use_delayed_payment_methods: false,
    is_onboarding_completed: true,
    is_onboarding_checklist_completed: true,
    created_at: 0,
    seat_type: 'workspace_member',
  });
