import t from 'tap';
import { noBrowser } from './browser-rig.js';
import { checkPages } from './every-page.js';

t.test('every page fits a phone, in dark colours', { skip: noBrowser }, (t) => checkPages(t, { dark: true, phone: true }));
