/* Finds the commands of a chat by name (chat_commands.h). */
#include "tools/cli/chat_commands.h"

#include <string.h>

#include "tools/cli/options.h"
#include "tools/cli/output.h"
#include "tools/cli/words.h"

typedef struct fr_named_command {
    const char *name;
    /* the argument's name in the help, in brackets if the argument is optional; NULL: the command has no argument */
    const char *value;
    fr_chat_command command;
    const char *help;
} fr_named_command;

static const fr_named_command commands[] = {
    {"/clear", NULL, FR_CHAT_CLEAR, "forget the conversation, all but its system turn"},
    {"/undo", NULL, FR_CHAT_UNDO, "take back the last turn and its answer, or what waits for a turn"},
    {"/regen", NULL, FR_CHAT_REGEN, "another reply to the last turn; greedy, there is no other"},
    {"/edit", NULL, FR_CHAT_EDIT, "the last turn once more, to be edited: the new one takes its place"},
    {"/save", "FILE", FR_CHAT_SAVE, "keep the conversation in a file: its messages as JSON, in the OpenAI form"},
    {"/load", "FILE", FR_CHAT_LOAD, "go on with the conversation of such a file; a turn without an answer gets one"},
    {"/image", "FILE", FR_CHAT_IMAGE, "a picture for the next turn: PNG, JPEG, WebP or GIF"},
    {"/read", "FILE", FR_CHAT_READ, "a file's text for the next turn, which stands behind it"},
    {"/system", "[TEXT]", FR_CHAT_SYSTEM, "another system turn, - for none; alone: what it is"},
    {"/set", "[NAME VALUE]", FR_CHAT_SET, "a setting, such as temp 0.5 or seed 7; alone: all that there are"},
    {"/context", NULL, FR_CHAT_CONTEXT, "how full the context is"},
    {"/stats", NULL, FR_CHAT_STATS, "statistics since the conversation began"},
    {"/help", NULL, FR_CHAT_HELP, "these lines"},
    {"/exit", NULL, FR_CHAT_EXIT, "end the conversation, as the end of input does (Ctrl-D)"},
    {"/quit", NULL, FR_CHAT_EXIT, "likewise"},
    {"/bye", NULL, FR_CHAT_EXIT, "likewise"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static fr_chat_command refuse_name(const char *word) {
    const fr_named_command *nearest = &commands[0];
    size_t distance = SIZE_MAX;
    for (size_t i = 0; i < COMMANDS; i++) {
        size_t d = fr_word_distance(word, commands[i].name);
        if (d >= distance) continue;
        distance = d;
        nearest = &commands[i];
    }
    if (fr_word_near(word, distance))
        fr_note("%s is no command; did you mean %s? (/help lists them)", word, nearest->name);
    else
        fr_note("%.80s is no command (/help lists them; to say a line that begins with /, write //)", word);
    return FR_CHAT_REFUSED;
}

fr_chat_command fr_chat_command_read(char *line, size_t length, const char **argument) {
    *argument = "";
    if (memchr(line, '\0', length)) {
        fr_note("a command has no NUL in it (/help lists the commands)");
        return FR_CHAT_REFUSED;
    }
    while (length > 0 && strchr(" \t", line[length - 1])) line[--length] = '\0';
    size_t name = strcspn(line, " \t");
    *argument = line + name + strspn(line + name, " \t");
    line[name] = '\0';
    for (size_t i = 0; i < COMMANDS; i++) {
        const fr_named_command *c = &commands[i];
        if (strcmp(line, c->name) != 0) continue;
        bool may = c->value && c->value[0] == '[';
        if (may || (c->value != NULL) == (**argument != '\0')) return c->command;
        if (c->value)
            fr_note("%s needs a %s (/help)", c->name, c->value);
        else
            fr_note("%.80s: what is this word for? %s stands alone (/help)", *argument, c->name);
        return FR_CHAT_REFUSED;
    }
    return refuse_name(line);
}

void fr_chat_commands_print(FILE *out) {
    for (size_t i = 0; i < COMMANDS; i++) {
        const fr_named_command *c = &commands[i];
        int width = fprintf(out, "  %s %s", c->name, c->value ? c->value : "");
        fprintf(out, "%*s%s\n", width < 23 ? 23 - width : 1, "", c->help);
    }
    fputs("  //...                say a line that begins with one /\n"
          "  ...\\                 go on in the next line; lines pasted at once are one turn\n"
          "  \"\"\"...               say all lines up to one that ends in \"\"\"\n",
          out);
}
