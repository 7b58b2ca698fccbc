/**
 * English words and first names of two and three letters. In capitals they are words, other capitals are spelled.
 *
 * Most of them are from SCOWL (Spell Checker Oriented Word Lists) up to its size 35, without words whose capitals are mostly
 * spelled (AD, ID, MS, RE). Copyright 2000-2011 by Kevin Atkinson; COPYING beside this file has the licence.
 */
export const shortWords: ReadonlySet<string> = new Set(
  (
    'abe ace act ada add ado ads age ago ah aha aid ail aim air ale ali all am amp amy an ana and ann ant any ' +
    'ape app apt arc are ark arm art as ash ask ass at ate ava awe ax axe aye bad bag bah ban bar bat bay be ' +
    'bed bee beg ben bet bib bid big bin bio bit boa bob bog boo bop bot bow box boy bra bro bud bug bum bun ' +
    'bus but buy by bye cab cad cam can cap car cat caw chi cob cod cog con coo cop cos cot cow cox coy cry ' +
    'cub cue cum cup cur cut dab dad dam dan day dee den dew did die dig dim din dip do doc doe dog don dos ' +
    'dot dr dry dub dud due dug duh duo dye ear eat ebb ed eel egg ego eh eke elf eli elk elm emo ems end eon ' +
    'era err etc eva eve ewe ex eye fad fan far fat fax fay fed fee fen few fey fez fib fig fin fir fit fix ' +
    'flo flu fly fob foe fog for fox fro fry fun fur gab gag gal gap gas gay gee gel gem get gif gig gil gin ' +
    'gnu go gob god goo got gui gum gun gus gut guy gym ha had hag hal ham has hat hay he hem hen her hew hex ' +
    'hey hi hid him hip his hit ho hoe hog hop hot how hub hue hug huh hum hun hut ian ice icy if ifs ike ilk ' +
    'ill imp in ink inn ion ira ire irk is it its ivy jab jag jam jan jar jaw jay jed jet jew jig jim jo job ' +
    'joe jog jon jot joy jr jug jut kay keg ken key kid kim kin kit lab lad lag lam lan lao lap law lax lay ' +
    'lea led lee leg lei len leo les let lew lid lie lip lit liz lo lob log lop lot lou low lug lye mad mae ' +
    'mag man mao map mar mat max may me meg meh mel men met mew mia mid mil mix mob mod moe mom moo mop mow ' +
    'mr mrs mud mug mum my nab nag nah nan nap nat nay ned neo net new nib nil nip nit nix no nod non nor not ' +
    'now nth nub nun nut oaf oak oar oat odd ode of off oh ohm ohs oil old on one opt or orb orc ore our out ' +
    'ova ow owe owl own ox pac pad pal pam pan pap par pas pat paw pay pea pee peg pen pep per pet pew pie ' +
    'pig pin pip pit ply pod poe pop pot pox pro pry pub pug pun pup pus put qua rad rae rag ram ran rap rat ' +
    'raw ray red ref rep rev rex rib rid rig rim rio rip rob rod roe rom ron rot row roy rub rue rug rum run ' +
    'rut rye sac sad sag sal sam sat saw sax say sea see set sew sex she shy sic sid sim sin sip sir sis sit ' +
    'six ski sky sly so sob sod son sow soy spa spy sr stu sty sub sue sum sun sup tab tad tag tam tan tap ' +
    'tar tat tax tea ted tee ten the tho thy tia tic tie tim tin tip tit to tod toe tom ton too top tor tot ' +
    'tow toy try tub tug tut tux two ugh uh um up urn us use val van vet vex via vie vim vow vs wad wag wan ' +
    'war was wax way we web wed wee wei wet who why wig win wit wiz woe wok won woo wot wow wry yak yam yap ' +
    'yaw ye yea yeh yen yep yes yet yew yip yo you yuk yum yup zap zed zen zip zoe zoo'
  ).split(' '),
);
