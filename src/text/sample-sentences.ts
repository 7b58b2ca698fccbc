/** Sentences for samples of voices, by language. */
import { primaryLanguage } from './language.js';

const sentences: Readonly<Record<string, string>> = {
  en: 'The kettle is on, and the kitchen smells of toast. Shall we sit by the window and talk?',
  de: 'Der Kessel summt, und die Küche duftet nach Brot. Wollen wir uns ans Fenster setzen?',
  fr: 'La bouilloire chante, et la cuisine sent le pain grillé. On s’assoit près de la fenêtre ?',
  es: 'El agua ya hierve y la cocina huele a pan tostado. ¿Nos sentamos junto a la ventana?',
  it: 'Il bollitore fischia e la cucina profuma di pane. Ci sediamo vicino alla finestra?',
  pt: 'A chaleira está no fogo e a cozinha cheira a pão. Vamos sentar junto à janela?',
  nl: 'De ketel fluit en de keuken ruikt naar brood. Zullen we bij het raam gaan zitten?',
  pl: 'Czajnik już gwiżdże, a w kuchni pachnie chlebem. Usiądziemy przy oknie?',
  ru: 'Чайник уже кипит, и на кухне пахнет хлебом. Сядем у окна и поговорим?',
  uk: 'Чайник уже закипає, а на кухні пахне хлібом. Сядемо біля вікна й поговоримо?',
  tr: 'Çaydanlık kaynıyor, mutfak ekmek kokuyor. Pencerenin yanına oturalım mı?',
  hi: 'केतली गरम है और रसोई में रोटी की महक है। क्या हम खिड़की के पास बैठें?',
  ar: 'الإبريق يغلي والمطبخ تفوح منه رائحة الخبز. هل نجلس قرب النافذة؟',
  ka: 'ჩაიდანი დუღს და სამზარეულოში პურის სუნი დგას. დავსხდეთ ფანჯარასთან და ვისაუბროთ?',
  zh: '水开了，厨房里有面包的香味。我们坐到窗边聊聊好吗？',
  ja: 'お湯が沸いて、台所はパンの香りがします。窓のそばに座りましょうか。',
};

/** A text that a voice of a pack can speak. */
export const sampleText = (
  { sample }: { readonly sample?: string },
  { language }: { readonly language: string },
): string => sample ?? sampleSentence(language);

/** @param language BCP 47 @returns the sentence in this language, or the English one */
export const sampleSentence = (language: string): string =>
  sentences[primaryLanguage(language).replace('cmn', 'zh')] ?? sentences['en']!;
