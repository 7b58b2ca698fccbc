/** Web and mail addresses, which are spoken short with and without `normalize_text`: written, and spoken. */
import type { Case } from './cases.js';

export const addressCases: Readonly<Record<string, readonly Case[]>> = {
  en: [
    ['https://example.org', 'example dot org'],
    ['http://www.example.com/', 'example dot com'],
    [
      'Visit https://shop.example.com/sale?utm_source=mail&id=5.',
      'Visit shop dot example dot com slash sale.',
    ],
    ['https://example.com/docs#install', 'example dot com slash docs'],
    ['https://example.com/how-to-bake-a-cake', 'example dot com slash how to bake a cake'],
    ['https://example.com/team/jane-doe', 'example dot com slash team slash jane dash doe'],
    ['http://localhost:3000/status', 'localhost colon three zero zero zero slash status'],
    [
      'http://192.168.0.10/admin',
      'one hundred ninety two dot one hundred sixty eight dot zero dot ten slash admin',
    ],
    ['https://example.com/a/b/c/d/e/f', 'example dot com slash eigh slash B slash C slash D'],
    ['https://example.com/item/8f14e45f-ceea-467f-a8d1-1b2c3d4e5f60/view', 'example dot com slash item'],
    ['https://video.example/watch?v=dQw4w9WgXcQ', 'video dot example slash watch'],
    ['https://example.com/p/12345678', 'example dot com slash P'],
    ['www.example.net/help?x=1', 'W W W dot example dot net slash help'],
    ['example.com/pricing', 'example dot com slash pricing'],
    ['example.com:8443', 'example dot com colon eight four four three'],
    ['mailto:info@example.com?subject=Hi', 'info at example dot com'],
    ['first.last+news@mail.example.co.uk', 'first dot last plus news at mail dot example dot co dot U K'],
    ['(see https://example.com/faq)', '(see example dot com slash F eigh Q)'],
    ['"https://example.com."', '"example dot com."'],
    ['<https://example.com/start>', 'example dot com slash start'],
    ['https://jane:secret@example.com/home', 'example dot com slash home'],
    ['ftp://files.example.net/pub/', 'files dot example dot net slash pub'],
    ['s3://bucket/photos', 'bucket slash photos'],
    ['https://example.com/caf%C3%A9', 'example dot com'],
    ['https://example.com/my%20file.pdf', 'example dot com slash my file dot P D F'],
    ['https://example.com?ref=home', 'example dot com'],
    ['https://api.example.com/v2/users', 'eigh P I dot example dot com slash V two slash users'],
    [
      'https://example.com/blog/2024/05/news.html',
      'example dot com slash blog slash two zero two four slash zero five slash news dot H T M L',
    ],
    ['end.Next and so.on', 'end.Next and so.on'],
    ['and/or, he/she', 'and/or, he/she'],
    ['note:this is it', 'note:this is it'],
    ['http:// is a scheme', 'http:// is a scheme'],
    ['jane@example', 'jane@example'],
    ['user@host.example/inbox', 'user at host dot example slash inbox'],
    ['https://example.com/rtx-6000', 'example dot com slash R T X dash six thousand'],
    ['https://münchen.example/straße', 'münchen dot example slash straße'],
    [
      'http://[2001:db8::1]:8080/',
      'two zero zero one colon D B eight colon colon one colon eight zero eight zero',
    ],
  ],
  de: [
    ['https://www.beispiel.de/hilfe?x=1', 'beispiel Punkt D E Schrägstrich hilfe'],
    ['anna.berg@beispiel.de', 'anna Punkt berg at beispiel Punkt D E'],
    ['http://beispiel.com/so-geht-das-heute', 'beispiel Punkt com Schrägstrich so geht das heute'],
  ],
  fr: [
    ['https://www.exemple.fr/aide#haut', 'exemple point F R barre oblique aide'],
    ['marie_d@exemple.fr', 'marie tiret bas D arobase exemple point F R'],
  ],
  es: [
    ['https://ejemplo.es/ayuda?x=1', 'ejemplo punto E S barra ayuda'],
    ['ana@ejemplo.com.mx', 'ana arroba ejemplo punto com punto M X'],
  ],
  it: [
    ['https://www.esempio.it/aiuto?x=1', 'esempio.it/aiuto'],
    ['anna@esempio.it', 'anna@esempio.it'],
    ['mailto:anna@esempio.it', 'anna@esempio.it'],
  ],
};
