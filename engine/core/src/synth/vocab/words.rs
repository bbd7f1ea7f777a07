//! Words for made-up vocabularies.

const CONSONANTS: &str = "tnrslhdcmfpgbvkwz";
const VOWELS: &str = "eaoiu";

/// Words that real text is full of, so that it takes about as many tokens as with a real vocabulary of modest size.
const COMMON: &str = "the of and to in is that for it as was with be by on not he his are this at from or have an they \
which one were all their there been has when who will no more if out so up said what about than into them can only other \
time new some could these two may first then do any like my now over such our man me even most made after also did many \
must before back see through way where get much go well your know should down work year because come people just say each \
those take day good how long little use own make life world still hand high last off part place right same small great old \
number line end why let name very home big give air set put port large spell add land here big high such follow act ask \
change went light kind need house picture try us again animal point mother near build self earth father head stand page \
country found answer school grow study learn plant cover food sun four between state keep eye never city tree cross farm \
hard start might story saw far sea draw left late run while press close night real few north open seem together next white \
children begin got walk example ease paper group always music both mark often letter until mile river car feet care second \
book carry took science eat room friend began idea fish mountain stop once base hear horse cut sure watch color face wood \
main enough plain girl usual young ready above ever red list though feel talk bird soon body dog family direct pose leave \
song measure door product black short class wind question happen complete ship area half rock order fire south problem \
piece told knew pass since top whole king space heard best hour better true during hundred five remember step early hold \
west ground interest reach fast verb sing listen six table travel less morning ten simple several vowel toward war lay \
against pattern slow center love person money serve appear road map rain rule govern pull cold notice voice unit power \
town fine certain fly fall lead cry dark machine note wait plan figure star box noun field rest correct able pound done \
beauty drive stood contain front teach week final gave green quick develop ocean warm free minute strong special mind \
behind clear tail produce fact street inch multiply nothing course stay wheel full force blue object decide surface deep \
moon island foot system busy test record boat common gold possible plane stead dry wonder laugh thousand ago ran check game \
shape equate hot miss brought heat snow tire bring yes distant fill east paint language among model token function return";

/// Endings, which follow other letters.
const ENDINGS: &str = "ing ed er est ly tion ment ness able ful less ous ive al ity ance ence ers ings";

/// Words in the order in which they become tokens. `space` is what a space is written as; most words exist with one in
/// front and without. More than a million.
pub(super) fn words(space: char) -> impl Iterator<Item = String> {
    let both = move |word: String| [format!("{space}{word}"), word];
    let common = COMMON.split_whitespace().map(str::to_owned).flat_map(both);
    let endings = ENDINGS.split_whitespace().map(str::to_owned);
    let doubles = || syllables().flat_map(|first| syllables().map(move |second| format!("{first}{second}")));
    let triples =
        move || doubles().flat_map(|first| syllables().map(move |second| format!("{first}{second}")));
    syllables()
        .chain(endings)
        .chain(common)
        .chain(syllables().map(move |s| format!("{space}{s}")))
        .chain(doubles().flat_map(both).chain(triples().flat_map(both)))
}

fn syllables() -> impl Iterator<Item = String> {
    VOWELS.chars().flat_map(|vowel| CONSONANTS.chars().map(move |consonant| format!("{consonant}{vowel}")))
}
