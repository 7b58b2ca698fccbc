/** For tests in which the cost of a password is not the subject: each hash takes the least time. */
import { passwordCost } from '../../src/accounts/passwords.js';

passwordCost.memoryCost = 8;
passwordCost.timeCost = 1;
