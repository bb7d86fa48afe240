/* Gives the regular expressions of a schema's formats (json_schema_reader.h).
 *
 * A format is only an annotation in JSON Schema 2020-12. So each expression allows everything that the format's
 * standard allows: a model that copies an address or a date must be able to write it unchanged. Where a standard sets
 * no bound, these expressions set one, so that a text can't continue without end. A number has at most 18 digits, and
 * the scheme of an address at most 63 characters. A format without an expression is ignored. */
#include <stdlib.h>
#include <string.h>

#include "src/language/grammar/json_schema_reader.h"

/* Dates and times by RFC 3339, except for the year 0000, which programs refuse. The 29th of February exists in years
 * that are multiples of 4. If such a year is a multiple of 100, it must also be a multiple of 400. A leap second is the
 * last second of a day in UTC. In local time, a leap second is allowed for the offsets that are in use. These are whole
 * and half hours, and, for offsets ahead of UTC, also three quarters of an hour (+05:45). */
#define YEAR      "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
#define FOURTH    "(0[48]|[2468][048]|[13579][26])"
#define LEAP_YEAR "([0-9]{2}" FOURTH "|" FOURTH "00)"
#define DATE                                                                                                          \
    "(" YEAR "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]" \
    "))|" LEAP_YEAR "-02-29)"
#define FRACTION "(\\.[0-9]{1,18})?"
#define OFFSET   "([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
/* clang-format off */
#define LEAP_SECONDS(hour, next, left)                                                                                 \
    hour ":(59:60" FRACTION "(\\+" next ":00|-" left ":00)|29:60" FRACTION "(\\+" hour ":30|-" left ":30)|44:60"       \
         FRACTION "\\+" hour ":45)"
#define TIME                                                                                                           \
    "(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]" FRACTION OFFSET "|23:59:60" FRACTION "([Zz]|[+-]00:00)"                \
    "|" LEAP_SECONDS("00", "01", "23") "|" LEAP_SECONDS("01", "02", "22") "|" LEAP_SECONDS("02", "03", "21")           \
    "|" LEAP_SECONDS("03", "04", "20") "|" LEAP_SECONDS("04", "05", "19") "|" LEAP_SECONDS("05", "06", "18")           \
    "|" LEAP_SECONDS("06", "07", "17") "|" LEAP_SECONDS("07", "08", "16") "|" LEAP_SECONDS("08", "09", "15")           \
    "|" LEAP_SECONDS("09", "10", "14") "|" LEAP_SECONDS("10", "11", "13") "|" LEAP_SECONDS("11", "12", "12")           \
    "|" LEAP_SECONDS("12", "13", "11") "|" LEAP_SECONDS("13", "14", "10") "|" LEAP_SECONDS("14", "15", "09")           \
    "|" LEAP_SECONDS("15", "16", "08") "|" LEAP_SECONDS("16", "17", "07") "|" LEAP_SECONDS("17", "18", "06")           \
    "|" LEAP_SECONDS("18", "19", "05") "|" LEAP_SECONDS("19", "20", "04") "|" LEAP_SECONDS("20", "21", "03")           \
    "|" LEAP_SECONDS("21", "22", "02") "|" LEAP_SECONDS("22", "23", "01") "|" LEAP_SECONDS("23", "00", "00") ")"
/* clang-format on */

/* Durations by RFC 3339, appendix A. Fractions of seconds are allowed, too, because ISO 8601 allows them and programs
 * write them. */
#define COUNT   "[0-9]{1,18}"
#define SECONDS COUNT FRACTION "S"
#define CLOCK   "T(" COUNT "H(" COUNT "M(" SECONDS ")?)?|" COUNT "M(" SECONDS ")?|" SECONDS ")"
#define DAYS    "(" COUNT "Y(" COUNT "M(" COUNT "D)?)?|" COUNT "M(" COUNT "D)?|" COUNT "D)"

/* URIs and IRIs by RFC 3986 and 3987. more: the characters that only IRIs allow; private: those that only the query of
 * an IRI allows. */
#define HEX      "[0-9A-Fa-f]"
#define BYTE     "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4     BYTE "(\\." BYTE "){3}"
#define PIECE    HEX "{1,4}"
#define LAST_TWO "(" PIECE ":" PIECE "|" IPV4 ")"
#define UP_TO(n) "((" PIECE ":){0," n "}" PIECE ")?::"
#define IPV6                                                                                                 \
    "((" PIECE ":){6}" LAST_TWO "|::(" PIECE ":){5}" LAST_TWO "|(" PIECE ")?::(" PIECE ":){4}" LAST_TWO      \
    "|" UP_TO("1") "(" PIECE ":){3}" LAST_TWO "|" UP_TO("2") "(" PIECE ":){2}" LAST_TWO "|" UP_TO("3") PIECE \
        ":" LAST_TWO "|" UP_TO("4") LAST_TWO "|" UP_TO("5") PIECE "|" UP_TO("6") ")"
#define NAMED              "A-Za-z0-9._~!$&'()*+,;="
#define ESCAPED            "%" HEX "{2}"
#define UCS                "\u00A0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF\U00010000-\U000EFFFD"
#define PRIVATE            "\uE000-\uF8FF\U000F0000-\U0010FFFD"
#define MARKED(more, some) "([" NAMED some more "-]|" ESCAPED ")"
#define AUTHORITY(more) \
    "(" MARKED(more, ":") "*@)?(\\[(" IPV6 "|[Vv]" HEX "+\\.[" NAMED ":-]+)\\]|" MARKED(more, "") "*)(:[0-9]*)?"
#define SEGMENTS(more)      "(/" MARKED(more, ":@") "*)*"
#define ROOTED(more)        "//" AUTHORITY(more) SEGMENTS(more) "|/(" MARKED(more, ":@") "+" SEGMENTS(more) ")?"
#define REST(more, private) "(\\?(" MARKED(more, ":@/?") "|[" private "])*)?(#" MARKED(more, ":@/?") "*)?"
#define SCHEME              "[A-Za-z][A-Za-z0-9+.-]{0,62}:"
#define ABSOLUTE(more, private) \
    SCHEME "(" ROOTED(more) "|" MARKED(more, ":@") "+" SEGMENTS(more) ")?" REST(more, private)
#define REFERENCE(more, private) \
    "(" ABSOLUTE(more, private) "|(" ROOTED(more) "|" MARKED(more, "@") "+" SEGMENTS(more) ")?" REST(more, private) ")"
#define NO_PRIVATE "?" /* URIs have no private characters. The query already allows '?', so this adds nothing to it. */

/* URI templates by RFC 6570. An expression in braces has variables; text outside of braces is literal. */
#define VARIABLE "([A-Za-z0-9_]|" ESCAPED ")+(\\.([A-Za-z0-9_]|" ESCAPED ")+)*(:[1-9][0-9]{0,3}|\\*)?"
#define LITERAL  "[!#$&(-;=?-\\[\\]_a-z~" UCS PRIVATE "]|" ESCAPED

/* Host names by RFC 1123 and 5890; mailboxes by RFC 5321 and 6531. */
#define LABEL        "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define HOST         LABEL "(\\." LABEL ")*"
#define WIDE_LABEL   "[A-Za-z0-9" UCS "]([A-Za-z0-9" UCS "-]{0,61}[A-Za-z0-9" UCS "])?"
#define WIDE_HOST    WIDE_LABEL "([.\u3002\uFF0E\uFF61]" WIDE_LABEL ")*"
#define ATOM(more)   "[A-Za-z0-9!#$%&'*+/=?^_`{|}~" more "-]+"
#define QUOTED(more) "\"([ !#-\\[\\]-~" more "]|\\\\[ -~])*\""
#define MAILBOX(more, host) \
    "(" ATOM(more) "(\\." ATOM(more) ")*|" QUOTED(more) ")@(" host "|\\[(" IPV4 "|[Ii][Pp][Vv]6:" IPV6 ")\\])"

/* JSON pointers by RFC 6901. */
#define POINTER "(/([^~/]|~[01])*)*"

static const struct format {
    const char *name, *expression;
} FORMATS[] = {
    {"date", DATE},
    {"time", TIME},
    {"date-time", DATE "[Tt]" TIME},
    {"duration", "P(" DAYS "(" CLOCK ")?|" CLOCK "|" COUNT "W)"},
    {"uuid", HEX "{8}-" HEX "{4}-" HEX "{4}-" HEX "{4}-" HEX "{12}"},
    {"ipv4", IPV4},
    {"ipv6", IPV6},
    {"hostname", HOST},
    {"idn-hostname", WIDE_HOST},
    {"email", MAILBOX("", HOST)},
    {"idn-email", MAILBOX(UCS, WIDE_HOST)},
    {"uri", ABSOLUTE("", NO_PRIVATE)},
    {"uri-reference", REFERENCE("", NO_PRIVATE)},
    {"iri", ABSOLUTE(UCS, PRIVATE)},
    {"iri-reference", REFERENCE(UCS, PRIVATE)},
    {"uri-template", "(" LITERAL "|\\{[+#./;?&=,!@|]?" VARIABLE "(," VARIABLE ")*\\})*"},
    {"json-pointer", POINTER},
    {"relative-json-pointer", "(0|[1-9][0-9]{0,17})([+-][1-9][0-9]{0,17})?(#|" POINTER ")"},
};

const char *fr_schema_format(const json_t *schema) {
    const char *name = json_string_value(json_object_get(schema, "format"));
    for (size_t i = 0; name && i < sizeof FORMATS / sizeof *FORMATS; i++)
        if (strcmp(name, FORMATS[i].name) == 0) return FORMATS[i].expression;
    return NULL;
}
