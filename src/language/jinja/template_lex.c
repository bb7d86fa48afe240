/* Implements Jinja's lexer (template_lex.h). */
#include "src/language/jinja/template_lex.h"

#include <stdio.h>

#include "base/error.h"
#include "base/unicode_form.h"
#include "src/language/jinja/template_text.h"

/* --------------------------------------------------------------------------------------------------------- position */

/* Copies the source. \r\n and \r become \n. A line end at the very end of the source is dropped. */
fr_status fr_jinja_lexer_open(fr_jinja_lexer *lexer, struct fr_template *template) {
    char *copy = fr_jinja_bump_take(&template->memory, template->length + 1, 1), *to = copy;
    if (!copy) return fr_template_fail_memory(template, 1, &template->memory);
    const char *end = template->source + template->length;
    for (const char *from = template->source; from < end; from++) {
        if (*from == '\r' && from + 1 < end && from[1] == '\n') continue;
        *to++ = *from == '\r' ? '\n' : *from;
    }
    if (to > copy && to[-1] == '\n') to--;
    *lexer = (fr_jinja_lexer){.template = template, .source = copy, .end = to, .at = copy, .line = 1};
    return FR_OK;
}

static void advance(fr_jinja_lexer *lexer, const char *to) {
    for (; lexer->at < to; lexer->at++) lexer->line += *lexer->at == '\n';
}

static bool starts(const fr_jinja_lexer *lexer, const char *at, const char *text) {
    size_t length = strlen(text);
    return (size_t)(lexer->end - at) >= length && memcmp(at, text, length) == 0;
}

static const char *skip_space(const fr_jinja_lexer *lexer, const char *at) {
    return at + fr_jinja_space_prefix(at, (size_t)(lexer->end - at));
}

static char sign_at(const fr_jinja_lexer *lexer, const char *at) {
    return at < lexer->end && (*at == '-' || *at == '+') ? *at : 0;
}

/* Gives the place after the end of a tag or comment at `at`; NULL: there is no such end. closing: "%}", "}}" or "#}".
 * If a - precedes `closing`, all white space after `closing` belongs to the end. plus: a + may precede `closing`.
 * trims: if neither sign precedes `closing`, a line break after it belongs to the end. */
static const char *close_at(const fr_jinja_lexer *lexer, const char *at, const char *closing, bool plus, bool trims) {
    char sign = sign_at(lexer, at);
    if (sign == '+' && !plus) return NULL;
    const char *behind = at + (sign != 0);
    if (!starts(lexer, behind, closing)) return NULL;
    behind += strlen(closing);
    if (sign == '-') return skip_space(lexer, behind);
    return trims && sign == 0 && behind < lexer->end && *behind == '\n' ? behind + 1 : behind;
}

/* ------------------------------------------------------------------------------------------------ text between tags */

/* Strips white space from the end of a text before a tag, by Jinja's rules. Gives the length that is left. sign: the
 * character after the tag's opening; only - and + have a meaning. print: the tag is "{{". */
static size_t stripped(const fr_jinja_lexer *lexer, const char *text, size_t length, char sign, bool print) {
    if (sign == '-') return length - fr_jinja_space_suffix(text, length);
    if (sign == '+' || print) return length;
    size_t line = length; /* the beginning of the tag's line */
    while (line > 0 && text[line - 1] != '\n') line--;
    bool whole = line > 0 || text == lexer->source || text[-1] == '\n';
    return whole && fr_jinja_space_prefix(text + line, length - line) == length - line ? line : length;
}

static void take_text(fr_jinja_token *token, const char *text, size_t length) {
    token->kind = FR_LEX_TEXT;
    token->bytes = text;
    token->length = length;
}

/* Gives the place after "{% raw %}", whose "{%" is at `at`; NULL: another tag is there. */
static const char *raw_at(const fr_jinja_lexer *lexer, const char *at) {
    at = skip_space(lexer, at + 2 + (sign_at(lexer, at + 2) != 0));
    if (!starts(lexer, at, "raw")) return NULL;
    at = skip_space(lexer, at + 3);
    return close_at(lexer, at, "%}", false, false);
}

/* Gives the place after the "{% endraw %}" at `at`; NULL: no such tag is there. */
static const char *end_raw_at(const fr_jinja_lexer *lexer, const char *at) {
    if (!starts(lexer, at, "{%")) return NULL;
    at = skip_space(lexer, at + 2 + (sign_at(lexer, at + 2) != 0));
    if (!starts(lexer, at, "endraw")) return NULL;
    at = skip_space(lexer, at + 6);
    return close_at(lexer, at, "%}", true, true);
}

static fr_status take_raw(fr_jinja_lexer *lexer, fr_jinja_token *token) {
    const char *begin = lexer->at, *tag = begin, *behind = NULL;
    for (; tag < lexer->end; tag++) {
        behind = *tag == '{' ? end_raw_at(lexer, tag) : NULL;
        if (behind) break;
    }
    if (begin == lexer->end) return FR_OK; /* Jinja, too, ignores a raw block that opens at the very end */
    if (!behind) return fr_template_fail(lexer->template, lexer->line, "a raw block without endraw");
    take_text(token, begin, stripped(lexer, begin, (size_t)(tag - begin), sign_at(lexer, tag + 2), false));
    advance(lexer, behind);
    return FR_OK;
}

static fr_status skip_comment(fr_jinja_lexer *lexer) {
    const char *at = lexer->at, *behind = NULL;
    for (; at < lexer->end; at++) {
        behind = close_at(lexer, at, "#}", true, true);
        if (behind) break;
    }
    if (!behind && lexer->at < lexer->end)
        return fr_template_fail(lexer->template, lexer->line, "a comment without an end");
    if (behind) advance(lexer, behind); /* Jinja, too, ignores a comment that opens at the very end of the source */
    return FR_OK;
}

/* Finds the next "{%", "{{" or "{#". */
static const char *find_tag(const fr_jinja_lexer *lexer, const char *at) {
    for (; at < lexer->end && (at = memchr(at, '{', (size_t)(lexer->end - at))); at++)
        if (at + 1 < lexer->end && (at[1] == '%' || at[1] == '{' || at[1] == '#')) return at;
    return lexer->end;
}

/* Takes the text, which may be empty, up to the next tag, and enters the tag. *opened: the kind of the tag; 0: no tag
 * follows, because the source has ended. */
static fr_status take_until_tag(fr_jinja_lexer *lexer, fr_jinja_token *token, char *opened) {
    const char *begin = lexer->at, *tag = find_tag(lexer, begin);
    *opened = tag < lexer->end ? tag[1] : 0;
    if (!*opened) {
        take_text(token, begin, (size_t)(tag - begin));
        advance(lexer, tag);
        return FR_OK;
    }
    char sign = sign_at(lexer, tag + 2);
    take_text(token, begin, stripped(lexer, begin, (size_t)(tag - begin), sign, *opened == '{'));
    const char *raw = *opened == '%' ? raw_at(lexer, tag) : NULL;
    if (raw) *opened = 'r';
    advance(lexer, raw ? raw : tag + 2 + (sign != 0));
    return FR_OK;
}

/* Takes the next token outside of tags: a text, or the opening of a tag. If a tag follows the text, its kind is kept
 * for the next call. */
static fr_status next_outside(fr_jinja_lexer *lexer, fr_jinja_token *token) {
    for (;;) {
        char opened = lexer->pending;
        lexer->pending = 0;
        if (!opened) {
            FR_TRY(take_until_tag(lexer, token, &opened));
            if (token->length > 0) {
                lexer->pending = opened;
                return FR_OK;
            }
        }
        if (opened == 0) {
            token->kind = FR_LEX_END;
            return FR_OK;
        }
        token->line = lexer->line;
        if (opened == 'r') {
            FR_TRY(take_raw(lexer, token));
            if (token->length > 0) return FR_OK;
        } else if (opened == '#') {
            FR_TRY(skip_comment(lexer));
        } else {
            lexer->in_block = opened == '%';
            lexer->in_print = opened == '{';
            token->kind = opened == '%' ? FR_LEX_BLOCK_BEGIN : FR_LEX_PRINT_BEGIN;
            return FR_OK;
        }
        token->line = lexer->line;
    }
}

/* -------------------------------------------------------------------------------------------------- strings in tags */

typedef struct escape {
    const char *at, *end;
    char *to;
} escape;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Gives the value of a digit or letter. Any other character gives 36, which is too large for a digit of any base. */
static int digit_value(char c) {
    int value = is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10;
    return value >= 0 && value < 36 ? value : 36;
}

/* Reads exactly `digits` hexadecimal digits; -1: there are fewer than that. */
static int32_t read_hexadecimal(escape *e, int digits) {
    uint32_t value = 0;
    for (; digits > 0; digits--, e->at++) {
        int digit = e->at < e->end ? digit_value(*e->at) : 36;
        if (digit >= 16) return -1;
        value = value << 4 | (uint32_t)digit;
    }
    return value > 0x10FFFF ? -1 : (int32_t)value;
}

/* Handles a backslash before a character that is not ASCII. Python first replaces the character by an escape. The
 * backslash in the source then escapes the backslash of that escape, so the escape stays as text. */
static void put_escaped_character(escape *e) {
    int32_t codepoint;
    e->at += fr_jinja_decode(e->at, (size_t)(e->end - e->at), &codepoint);
    const char *format = codepoint < 0x100 ? "\\x%02x" : codepoint < 0x10000 ? "\\u%04x" : "\\U%08x";
    e->to += snprintf(e->to, 11, format, (unsigned)codepoint);
}

/* Converts an escape; the reader is after its backslash. Returns false if there is no such escape. */
static bool put_escape(escape *e) {
    static const char letters[] = "abfnrtv\\'\"", meanings[] = "\a\b\f\n\r\t\v\\'\"";
    char c = *e->at;
    if ((unsigned char)c >= 0x80) {
        put_escaped_character(e);
        return true;
    }
    e->at++;
    const char *letter = c ? strchr(letters, c) : NULL;
    int32_t codepoint = -1;
    if (c == '\n') return true;
    if (letter) {
        codepoint = meanings[letter - letters];
    } else if (c >= '0' && c <= '7') {
        codepoint = c - '0';
        for (int i = 0; i < 2 && e->at < e->end && *e->at >= '0' && *e->at <= '7'; i++)
            codepoint = codepoint * 8 + *e->at++ - '0';
    } else if (c == 'x' || c == 'u' || c == 'U') {
        codepoint = read_hexadecimal(e, c == 'x' ? 2 : c == 'u' ? 4 : 8);
        if (codepoint < 0 || (codepoint >= 0xD800 && codepoint <= 0xDFFF)) return false;
    } else if (c == 'N') {
        return false;
    } else {
        *e->to++ = '\\';
        codepoint = c;
    }
    e->to += fr_jinja_encode(codepoint, e->to);
    return true;
}

/* Takes the string whose opening quote is at the present place. */
static fr_status take_string(fr_jinja_lexer *lexer, fr_jinja_token *token) {
    const char *begin = lexer->at + 1, *end = begin;
    while (end < lexer->end && *end != *lexer->at) end += *end == '\\' && end + 1 < lexer->end ? 2 : 1;
    if (end >= lexer->end) return fr_template_fail(lexer->template, lexer->line, "a string without an end");
    /* The text becomes at most four times as long: an escape gives at most 10 bytes, and one that gives 10 bytes has at
     * least 3 bytes in the source. */
    char *text = fr_jinja_bump_take(&lexer->template->memory, (size_t)(end - begin) * 4 + 1, 1);
    if (!text) return fr_template_fail_memory(lexer->template, lexer->line, &lexer->template->memory);
    escape e = {begin, end, text};
    while (e.at < end) {
        if (*e.at != '\\') {
            *e.to++ = *e.at++;
            continue;
        }
        e.at++;
        if (!put_escape(&e)) return fr_template_fail(lexer->template, lexer->line, "an unknown escape in a string");
    }
    *token =
        (fr_jinja_token){.kind = FR_LEX_STRING, .line = lexer->line, .bytes = text, .length = (size_t)(e.to - text)};
    advance(lexer, end + 1);
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------------- numbers in tags */

/* Skips digits and gives the place after them. A single _ may separate two digits. */
static const char *skip_digits(const fr_jinja_lexer *lexer, const char *at) {
    while (at < lexer->end) {
        if (*at == '_' && at + 1 < lexer->end && is_digit(at[1])) at++;
        if (!is_digit(*at)) break;
        at++;
    }
    return at;
}

static const char *skip_exponent(const fr_jinja_lexer *lexer, const char *at) {
    if (at == lexer->end || (*at | 0x20) != 'e') return at;
    const char *digits = at + 1 + (sign_at(lexer, at + 1) != 0);
    return digits < lexer->end && is_digit(*digits) ? skip_digits(lexer, digits) : at;
}

/* Gives the place after a float such as 1.5, 1e5 or 1.5e5. If no float begins here, gives `begin`. */
static const char *skip_float(const fr_jinja_lexer *lexer, const char *begin) {
    const char *whole = skip_digits(lexer, begin), *end = whole;
    if (begin > lexer->source && begin[-1] == '.') return begin;
    if (end + 1 < lexer->end && *end == '.' && is_digit(end[1])) end = skip_digits(lexer, end + 1);
    end = skip_exponent(lexer, end);
    return end > whole ? end : begin;
}

static fr_status take_float(fr_jinja_lexer *lexer, fr_jinja_token *token, const char *end) {
    char digits[400];
    size_t length = 0;
    for (const char *c = lexer->at; c < end && length + 1 < sizeof digits; c++)
        if (*c != '_') digits[length++] = *c;
    token->kind = FR_LEX_FLOAT;
    if (length + 1 >= sizeof digits || !fr_jinja_read_real(digits, length, &token->real))
        return fr_template_fail(lexer->template, lexer->line, "a number that is too long or too large");
    advance(lexer, end);
    return FR_OK;
}

/* Takes an integer such as 12, 1_000, 0x1F, 0o17 or 0b11. If a decimal number begins with 0, only zeros may follow. */
static fr_status take_int(fr_jinja_lexer *lexer, fr_jinja_token *token) {
    static const char letters[] = "box";
    static const int bases[] = {2, 8, 16};
    const char *at = lexer->at, *letter = NULL;
    int base = *at == '0' ? 1 : 10;
    if (*at == '0' && at + 1 < lexer->end && at[1]) letter = strchr(letters, at[1] | 0x20);
    if (letter) {
        const char *first = at + 2 + (at + 2 < lexer->end && at[2] == '_');
        if (first < lexer->end && digit_value(*first) < bases[letter - letters]) {
            base = bases[letter - letters];
            at = first;
        }
    }
    bool fits = true;
    for (; at < lexer->end; at++) {
        if (*at == '_' && at + 1 < lexer->end) at++;
        if (digit_value(*at) >= base) {
            at -= at[-1] == '_' && at > lexer->at;
            break;
        }
        fits = fits && !__builtin_mul_overflow(token->integer, base, &token->integer) &&
               !__builtin_add_overflow(token->integer, digit_value(*at), &token->integer);
    }
    if (!fits) return fr_template_fail(lexer->template, lexer->line, "a number that is too large");
    token->kind = FR_LEX_INT;
    advance(lexer, at);
    return FR_OK;
}

/* --------------------------------------------------------------------------------------------- other tokens in tags */

static const struct {
    const char *text;
    fr_jinja_token_kind kind;
} operators[] = {
    /* operators of two characters come first; otherwise their first character would be found as an operator */
    {"**", FR_LEX_POWER},
    {"//", FR_LEX_FLOOR_DIVIDE},
    {"==", FR_LEX_EQUAL},
    {"!=", FR_LEX_UNEQUAL},
    {">=", FR_LEX_GREATER_EQUAL},
    {"<=", FR_LEX_LESS_EQUAL},
    {">", FR_LEX_GREATER},
    {"<", FR_LEX_LESS},
    {"+", FR_LEX_ADD},
    {"-", FR_LEX_SUBTRACT},
    {"*", FR_LEX_MULTIPLY},
    {"/", FR_LEX_DIVIDE},
    {"%", FR_LEX_REMAINDER},
    {"~", FR_LEX_TILDE},
    {"[", FR_LEX_LEFT_BRACKET},
    {"]", FR_LEX_RIGHT_BRACKET},
    {"(", FR_LEX_LEFT_PARENTHESIS},
    {")", FR_LEX_RIGHT_PARENTHESIS},
    {"{", FR_LEX_LEFT_BRACE},
    {"}", FR_LEX_RIGHT_BRACE},
    {"=", FR_LEX_ASSIGN},
    {".", FR_LEX_DOT},
    {":", FR_LEX_COLON},
    {"|", FR_LEX_PIPE},
    {",", FR_LEX_COMMA},
    {";", FR_LEX_SEMICOLON},
};

/* Updates the stack of open brackets. It is needed because the end of a tag has no meaning within brackets. */
static fr_status balance(fr_jinja_lexer *lexer, char c) {
    static const char opening[] = "([{", closing[] = ")]}";
    const char *opens = strchr(opening, c), *closes = strchr(closing, c);
    if (opens && lexer->open_count == sizeof lexer->open)
        return fr_template_fail(lexer->template, lexer->line, "brackets nested deeper than %zu", sizeof lexer->open);
    if (opens) lexer->open[lexer->open_count++] = closing[opens - opening];
    if (!closes) return FR_OK;
    if (lexer->open_count == 0 || lexer->open[lexer->open_count - 1] != c)
        return fr_template_fail(lexer->template, lexer->line, "unexpected '%c'", c);
    lexer->open_count--;
    return FR_OK;
}

static fr_status take_operator(fr_jinja_lexer *lexer, fr_jinja_token *token) {
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (!starts(lexer, lexer->at, operators[i].text)) continue;
        FR_TRY(balance(lexer, *lexer->at));
        token->kind = operators[i].kind;
        token->length = strlen(operators[i].text);
        advance(lexer, lexer->at + strlen(operators[i].text));
        return FR_OK;
    }
    int32_t codepoint;
    size_t length = fr_jinja_decode(lexer->at, (size_t)(lexer->end - lexer->at), &codepoint);
    return fr_template_fail(lexer->template, lexer->line, "unexpected '%.*s'", (int)length, lexer->at);
}

static size_t name_length(const fr_jinja_lexer *lexer) {
    size_t length = 0, left = (size_t)(lexer->end - lexer->at), step;
    for (; left > length; length += step) {
        int32_t codepoint;
        step = fr_jinja_decode(lexer->at + length, left - length, &codepoint);
        if (codepoint != '_' && !fr_is_word(codepoint)) break;
    }
    return length;
}

static fr_status next_inside(fr_jinja_lexer *lexer, fr_jinja_token *token) {
    advance(lexer, skip_space(lexer, lexer->at));
    token->line = lexer->line;
    const char *behind = NULL;
    if (lexer->at == lexer->end) return fr_template_fail(lexer->template, lexer->line, "a tag without an end");
    if (lexer->open_count == 0)
        behind = close_at(lexer, lexer->at, lexer->in_block ? "%}" : "}}", lexer->in_block, lexer->in_block);
    if (behind) {
        token->kind = lexer->in_block ? FR_LEX_BLOCK_END : FR_LEX_PRINT_END;
        lexer->in_block = lexer->in_print = false;
        advance(lexer, behind);
        return FR_OK;
    }
    token->bytes = lexer->at;
    token->length = name_length(lexer);
    if (is_digit(*lexer->at)) {
        const char *end = skip_float(lexer, lexer->at);
        return end > lexer->at ? take_float(lexer, token, end) : take_int(lexer, token);
    }
    if (token->length > 0) {
        token->kind = FR_LEX_NAME;
        advance(lexer, lexer->at + token->length);
        return FR_OK;
    }
    return *lexer->at == '\'' || *lexer->at == '"' ? take_string(lexer, token) : take_operator(lexer, token);
}

fr_status fr_jinja_lexer_next(fr_jinja_lexer *lexer, fr_jinja_token *token) {
    *token = (fr_jinja_token){.line = lexer->line, .bytes = ""};
    return lexer->in_block || lexer->in_print ? next_inside(lexer, token) : next_outside(lexer, token);
}
