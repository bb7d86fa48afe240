/* Finds all characters that have a property (unicode_classes.h). */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "src/language/grammar/unicode_classes.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/error.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define CLASS_NAME_MAX  64

typedef struct found {
    fr_character_range *ranges;
    size_t most, count;
} found;

/* Adds characters. They must come after all characters that were added before. */
static void add(found *f, uint32_t low, uint32_t high) {
    fr_character_range *last = f->count && f->count <= f->most ? &f->ranges[f->count - 1] : NULL;
    if (last && last->high + 1 == low) {
        last->high = high;
        return;
    }
    if (f->count < f->most) f->ranges[f->count] = (fr_character_range){low, high};
    f->count++;
}

/* ------------------------------------------------------------------------------------------------------- categories */

/* Gives the short name of a general category; NULL: there is no such category. */
static const char *category_of(const char *name) {
    static const char *const names[][3] = {{"C", "Other"},
                                           {"Cc", "Control", "cntrl"},
                                           {"Cf", "Format"},
                                           {"Cn", "Unassigned"},
                                           {"Co", "Private_Use"},
                                           {"Cs", "Surrogate"},
                                           {"L", "Letter"},
                                           {"LC", "Cased_Letter", "L&"},
                                           {"Ll", "Lowercase_Letter"},
                                           {"Lm", "Modifier_Letter"},
                                           {"Lo", "Other_Letter"},
                                           {"Lt", "Titlecase_Letter"},
                                           {"Lu", "Uppercase_Letter"},
                                           {"M", "Mark", "Combining_Mark"},
                                           {"Mc", "Spacing_Mark"},
                                           {"Me", "Enclosing_Mark"},
                                           {"Mn", "Nonspacing_Mark"},
                                           {"N", "Number"},
                                           {"Nd", "Decimal_Number", "digit"},
                                           {"Nl", "Letter_Number"},
                                           {"No", "Other_Number"},
                                           {"P", "Punctuation", "punct"},
                                           {"Pc", "Connector_Punctuation"},
                                           {"Pd", "Dash_Punctuation"},
                                           {"Pe", "Close_Punctuation"},
                                           {"Pf", "Final_Punctuation"},
                                           {"Pi", "Initial_Punctuation"},
                                           {"Po", "Other_Punctuation"},
                                           {"Ps", "Open_Punctuation"},
                                           {"S", "Symbol"},
                                           {"Sc", "Currency_Symbol"},
                                           {"Sk", "Modifier_Symbol"},
                                           {"Sm", "Math_Symbol"},
                                           {"So", "Other_Symbol"},
                                           {"Z", "Separator"},
                                           {"Zl", "Line_Separator"},
                                           {"Zp", "Paragraph_Separator"},
                                           {"Zs", "Space_Separator"}};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        for (size_t k = 0; k < 3 && names[i][k]; k++)
            if (strcmp(names[i][k], name) == 0) return names[i][0];
    return NULL;
}

/* Adds the characters of a category. If `except` is true, adds all other characters instead. Halves of surrogate pairs
 * are not characters. */
static void find_category(found *f, const char *category, bool except) {
    bool cased = strcmp(category, "LC") == 0, one = category[1] != '\0';
    for (uint32_t code = 0; code <= FR_CODE_POINT_MAX; code++) {
        if (code == 0xD800) code = 0xE000;
        const char *own = utf8proc_category_string((utf8proc_int32_t)code);
        bool is =
            cased ? own[0] == 'L' && strchr("ult", own[1]) : own[0] == category[0] && (!one || own[1] == category[1]);
        if (is != except) add(f, code, code);
    }
}

/* --------------------------------------------------------------------------------------- scripts, binary properties */

/* Returns true for the name of a binary property of ECMA 262. */
static bool is_binary(const char *name) {
    static const char *const names[] = {"ASCII_Hex_Digit",
                                        "AHex",
                                        "Alphabetic",
                                        "Alpha",
                                        "Bidi_Control",
                                        "Bidi_C",
                                        "Case_Ignorable",
                                        "CI",
                                        "Cased",
                                        "Dash",
                                        "Default_Ignorable_Code_Point",
                                        "DI",
                                        "Deprecated",
                                        "Dep",
                                        "Diacritic",
                                        "Dia",
                                        "Emoji",
                                        "Emoji_Component",
                                        "EComp",
                                        "Emoji_Modifier",
                                        "EMod",
                                        "Emoji_Modifier_Base",
                                        "EBase",
                                        "Emoji_Presentation",
                                        "EPres",
                                        "Extended_Pictographic",
                                        "ExtPict",
                                        "Extender",
                                        "Ext",
                                        "Grapheme_Base",
                                        "Gr_Base",
                                        "Grapheme_Extend",
                                        "Gr_Ext",
                                        "Hex_Digit",
                                        "Hex",
                                        "ID_Continue",
                                        "IDC",
                                        "ID_Start",
                                        "IDS",
                                        "Ideographic",
                                        "Ideo",
                                        "Join_Control",
                                        "Join_C",
                                        "Lowercase",
                                        "Lower",
                                        "Math",
                                        "Pattern_Syntax",
                                        "Pat_Syn",
                                        "Pattern_White_Space",
                                        "Pat_WS",
                                        "Quotation_Mark",
                                        "QMark",
                                        "Radical",
                                        "Regional_Indicator",
                                        "RI",
                                        "Sentence_Terminal",
                                        "STerm",
                                        "Soft_Dotted",
                                        "SD",
                                        "Terminal_Punctuation",
                                        "Term",
                                        "Unified_Ideograph",
                                        "UIdeo",
                                        "Uppercase",
                                        "Upper",
                                        "Variation_Selector",
                                        "VS",
                                        "White_Space",
                                        "space",
                                        "XID_Continue",
                                        "XIDC",
                                        "XID_Start",
                                        "XIDS"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* The ranges of characters that are searched for scripts and properties. All other characters are unassigned or for
 * private use, so no script or property has them. */
static const fr_character_range PLANES[] = {{0, 0xD7FF}, {0xE000, 0x33FFF}, {0xE0000, 0xE0FFF}};

/* Adds the characters of a range that have the property. regex: PCRE2's expression for runs of characters with the
 * property. */
static fr_status find_matches(found *f, const pcre2_code *regex, fr_character_range stretch) {
    size_t length = 0;
    uint8_t *text = malloc(4 * (size_t)(stretch.high - stretch.low + 1));
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    fr_status status = text && match ? FR_OK : fr_fail_memory("a class of characters", 0);
    for (uint32_t code = stretch.low; status == FR_OK && code <= stretch.high; code++)
        length += (size_t)utf8proc_encode_char((utf8proc_int32_t)code, text + length);
    for (size_t at = 0; status == FR_OK && at < length;) {
        if (pcre2_match(regex, text, length, at, PCRE2_NO_UTF_CHECK, match, NULL) < 0) break;
        const PCRE2_SIZE *place = pcre2_get_ovector_pointer(match);
        utf8proc_int32_t low = 0, high = 0;
        size_t last = at = place[1];
        do last--;
        while ((text[last] & 0xC0) == 0x80);
        utf8proc_iterate(text + place[0], -1, &low);
        utf8proc_iterate(text + last, -1, &high);
        add(f, (uint32_t)low, (uint32_t)high);
    }
    pcre2_match_data_free(match);
    free(text);
    return status;
}

/* Adds the characters of a property. kind, name: the property in PCRE2's notation. *known: true if PCRE2 knows the
 * property. */
static fr_status find_property(found *f, const char *kind, const char *name, bool *known) {
    char text[2 * CLASS_NAME_MAX];
    int error;
    PCRE2_SIZE place;
    snprintf(text, sizeof text, "\\p{%s%s}+", kind, name);
    pcre2_code *regex = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error, &place, NULL);
    *known = regex != NULL;
    fr_status status = FR_OK;
    for (size_t i = 0; regex && i < COUNT_OF(PLANES) && status == FR_OK; i++)
        status = find_matches(f, regex, PLANES[i]);
    pcre2_code_free(regex);
    return status;
}

/* ----------------------------------------------------------------------------------------------------- any property */

/* Returns true for a name that begins with one of two words and an equals sign. *rest: the text after that sign. */
static bool takes_word(const char *name, const char *word, const char *other, const char **rest) {
    const char *words[] = {word, other};
    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(name, words[i], length) != 0 || name[length] != '=') continue;
        *rest = name + length + 1;
        return true;
    }
    return false;
}

static bool is_word(const char *text) {
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return length > 0 && text[length] == '\0';
}

fr_status fr_unicode_class(fr_text name, fr_character_range *ranges, size_t most, size_t *count) {
    char own[CLASS_NAME_MAX];
    const char *value = own;
    found f = {.ranges = ranges, .most = most};
    bool known = false, fits = name.length < sizeof own && !memchr(name.bytes, '\0', name.length);
    fr_status status = FR_OK;
    snprintf(own, sizeof own, "%.*s", fits ? (int)name.length : 0, name.bytes);
    bool category = takes_word(own, "General_Category", "gc", &value), script = takes_word(own, "Script", "sc", &value),
         extensions = takes_word(own, "Script_Extensions", "scx", &value), alone = !category && !script && !extensions;
    const char *short_name = category || alone ? category_of(value) : NULL;
    if (short_name) {
        known = true;
        find_category(&f, short_name, false);
    } else if (alone && (strcmp(value, "Any") == 0 || strcmp(value, "ASCII") == 0)) {
        known = true;
        add(&f, 0, value[1] == 'n' ? FR_CODE_POINT_MAX : 0x7F);
    } else if (alone && strcmp(value, "Assigned") == 0) {
        known = true;
        find_category(&f, "Cn", true);
    } else if (alone && is_binary(value)) {
        status = find_property(&f, "", value, &known);
    } else if (!category && is_word(value)) {
        status = find_property(&f, extensions ? "scx:" : "sc:", value, &known);
    }
    if (status != FR_OK) return status;
    *count = f.count;
    return known ? FR_OK
                 : fr_fail(FR_UNBUILT,
                           "\\p{%.60s} is not built: it is no category, script or property that is "
                           "known here",
                           fits ? own : "...");
}
