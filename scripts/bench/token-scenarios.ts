/** Text that arrives as a language model writes it: when speech begins, and whether it ever waits for text. */
import type { Load } from './load.js';
import { ms, row, spread, type Row } from './report.js';
import type { Target } from './streams.js';
import { median } from '../rig/statistics.js';

/** Answers as a voice agent's language model writes them: short and long beginnings, numbers, lists, questions. */
const agentTexts: readonly string[] = [
  'Sure, I can help you with that. The next train to the coast leaves in twenty minutes from the platform on your left. Would you like me to book a seat by the window?',
  'Thanks for calling Harbor Dental, this is the front desk assistant. I see that you have a cleaning scheduled for next Tuesday at ten. Is that what you are calling about?',
  'Your package left the warehouse in Columbus this morning and it should reach you by Thursday evening. You will get a text message when the driver is about ten stops away.',
  'I checked the account that ends in 4471 and the payment of $86.20 went through on March 3. There is nothing else due at the moment.',
  'Great question! The premium plan includes unlimited storage, priority support, and a shared calendar for up to twelve people. The basic plan has the first of those only.',
  'It looks like the flight to Denver is delayed by about an hour and a half because of thunderstorms along the route. I can move you to the one that leaves at 6:40 p.m. if you like.',
  'Unfortunately the table by the fireplace is already taken on Saturday night. I could offer you one on the terrace at seven, or the same table on Sunday. Which would you prefer?',
  'To reset the router, hold the small button on the back for ten seconds and wait until the light turns green. That usually takes about two minutes. Tell me when it is done.',
  'Of course. I have moved your appointment with Dr. Patel to Friday the 14th at 9:30 in the morning. Please bring your insurance card and a list of your medicines.',
  'The weather in Lisbon this weekend will be warm and mostly sunny with a light wind from the north. Saturday reaches 27 degrees, and Sunday is a little cooler.',
  'Before I make any change to the account I need to verify a few details with you. Could you tell me the postcode and the last four digits of your phone number?',
  'Yes. The refund was issued on Monday, and it normally takes three to five business days until the bank shows it. If it is not there by next week, call us again.',
  'There are three pharmacies near you that are open right now. The closest one is on Grant Street, about four minutes by car. Shall I send you the directions?',
  'I understand how frustrating that must be, and I am sorry that the technician did not come as promised. I have already asked the dispatch team for a new slot tomorrow.',
  'A medium pizza with mushrooms, olives and extra cheese comes to $18.50 with delivery. It will be there in about thirty five minutes. Do you want anything to drink with it?',
  'The museum opens at ten every day except Monday and the last entry is an hour before closing. Children under twelve do not pay.',
  'Okay, so the error that you are seeing usually means that the printer has lost its connection to the network. Let us try to turn it off and on again first.',
  'Well, the short answer is that both phones have the same camera. The larger one has a better battery, a brighter screen and twice the memory, and it costs about two hundred more.',
  'Your current balance is $1,204.77 and the minimum payment of $35 is due on the 21st. Would you like to pay the full amount today?',
  'When you arrive at the airport, follow the signs to terminal two and take the shuttle from stop number six. It runs every twelve minutes until midnight.',
  'Hi there! I am the assistant of Green Valley Hotel and I can help you with reservations, directions and anything about your stay. What can I do for you today?',
  'We have two rooms left for those dates, a double with a view of the lake and a twin that faces the garden. The double is $149 a night and breakfast is included.',
  'Please take the medicine with food and not on an empty stomach. If you feel dizzy or notice a rash, stop taking it and call the clinic at once.',
  'I found a recipe for lentil soup that takes about forty minutes and needs only one pot. You will need onions, carrots, a can of tomatoes and some cumin. Shall I read the steps?',
  'The meeting with the design team has been moved from Wednesday at two to Thursday at eleven. Anna and Marcus have accepted, but Priya has not answered yet.',
  'No problem at all. I have cancelled the order and you will not be charged. Is there anything else that I can do for you?',
  'That depends on how long you plan to stay in the country. For visits of up to ninety days you do not need a visa, but your passport must be valid for six months.',
  'As far as I can see the heating in your building was switched off for maintenance this morning. The work should be finished by four in the afternoon.',
  'The fastest way is to take the blue line to Central Station and change there to the number 9 tram. The whole trip takes about twenty five minutes.',
  'Let me check that for you. The invoice from January was paid, the one from February is still open, and the one for March will be sent next week.',
  'Happy to help! First open the settings, then choose privacy, and scroll down until you see the switch for location. Turn it off and restart the app.',
  'Our support team is available from Monday to Friday between eight in the morning and six in the evening. On weekends you can leave a message and we will call you back.',
  'You currently have 3.5 gigabytes of data left until the end of the month. At your usual pace that lasts for nine more days, so you may want to add a small package.',
  'I have found four apartments that match what you are looking for, and two of them allow dogs. The cheapest is on Maple Avenue for $1,450 a month. Do you want to visit it?',
  'If you prefer a quieter place I would suggest the small cafe behind the town hall. They have excellent cake and you can sit outside in the shade of the old trees.',
  'Good morning, Mr. Alvarez. Your car is ready to be picked up. We changed the oil and both front brake pads, and the total comes to $412.',
  'Most people feel better within a day or two after they start to drink enough water and rest. If the fever goes above 39 degrees, you should see a doctor.',
  'Right now there are no seats left in the front rows for the Friday show. On Saturday I still see eight of them, and the price is the same. Should I hold two for you?',
  'The warranty covers every part of the machine except the filter for a period of two years. You only have to send us the receipt and a photo of the serial number.',
  'I am afraid that I cannot change the name on the ticket, but I can cancel it and book a new one. The fee for that is $25. Do you want me to go ahead?',
  'Alright, here is what I have so far: two adults and one child, arriving on the 5th of August and leaving on the 9th. Is that correct?',
  'Because the bridge on Route 12 is closed, the bus takes a detour through the old town. Expect to arrive about fifteen minutes later than usual.',
  'You can return the shoes within thirty days as long as they have not been worn outside. Print the label from the email that we sent you and drop the box at any post office.',
  'The next available appointment with a specialist is in about three weeks. I can put you on the waiting list, and we will call if something opens up earlier.',
  'Your subscription renews on June 1 for another year at the same price as before. If you would like to switch to monthly billing, I can do that for you now.',
  'Interesting! In that case I would start with the beginner course, which runs every Tuesday evening for eight weeks. It covers the basics, and you do not need any equipment.',
  'According to the latest report the water level in the river has gone down by about half a meter since yesterday. The path along the shore is open again.',
  'Could you please spell your last name for me? I have an order under Thompson with a P, and another one under Thomson without it.',
  'I just sent a code with six digits to the phone number that we have on file. Please read it to me when it arrives, and then we can continue.',
  'The concert starts at eight but the doors already open at half past six. Large bags are not allowed inside, and there is free parking behind the stadium.',
];

/** Fewer at a time where text comes fast: the machine speaks all of it, and must not be the reason to wait. */
const speeds = [
  { tokensPerSecond: 10, atOnce: 10 },
  { tokensPerSecond: 20, atOnce: 8 },
  { tokensPerSecond: 40, atOnce: 4 },
  { tokensPerSecond: 80, atOnce: 2 },
  { tokensPerSecond: 160, atOnce: 1 },
] as const;
/** Of the first sound, compared with speech that waits for a sentence or for a hundred characters. */
const ratioMax = 0.5;
/** From this speed on, a listener never waits for text. */
const gaplessTokensPerSecond = 40;
/** A clock's tick and a socket's turn. */
const gapMsMax = 5;
/** One lane for each key. */
export const tokenKeysNeeded = Math.max(...speeds.map(({ atOnce }) => atOnce));

export const measureTokens = async (load: Load, target: Target): Promise<Row[]> => {
  // The first utterances make the service load and compile code.
  await load.call('replayTokens', { target, texts: agentTexts.slice(0, 5), tokensPerSecond: 160, atOnce: 1 });
  const rows: Row[] = [];
  for (const { atOnce, tokensPerSecond } of speeds) {
    const replays = await load.call('replayTokens', { target, texts: agentTexts, tokensPerSecond, atOnce });
    const early = replays.map(({ firstSoundMs }) => firstSoundMs.tokens);
    const late = replays.map(({ firstSoundMs }) => firstSoundMs.sentences);
    const ratio = median(early) / median(late);
    rows.push(
      row(
        `First sound, ${tokensPerSecond} tokens a second, ${replays.length} texts`,
        `${spread(early, 0)}; by the sentence ${spread(late, 0)} (${ratio.toFixed(2)} x)`,
        `p50 at most ${ratioMax} x by the sentence`,
        ratio <= ratioMax,
      ),
    );
    const gaps = replays.map(({ dryMs }) => dryMs).filter((dryMs) => dryMs > gapMsMax);
    const what = `Gaps in playback, ${tokensPerSecond} tokens a second`;
    const figure =
      gaps.length === 0 ? 'none' : `${gaps.length} texts, the longest ${ms(Math.max(...gaps), 0)}`;
    const hasBar = tokensPerSecond >= gaplessTokensPerSecond;
    rows.push(hasBar ? row(what, figure, 'none', gaps.length === 0) : row(what, figure));
  }
  return rows;
};
