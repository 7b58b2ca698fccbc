/** Entry of the administration thread, with passwords that cost little. */
import './quick-passwords.js';

await import('../../workers/administration.js');
