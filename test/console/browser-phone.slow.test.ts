import t from 'tap';
import { noBrowser } from './browser-rig.js';
import { checkPages } from './every-page.js';

t.test('each page fits a phone, dark', { skip: noBrowser }, (t) =>
  checkPages(t, { dark: true, phone: true }),
);
