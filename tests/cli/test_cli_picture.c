/* Tests that generate describes a picture. The model is read from the published folder, and again from two GGUF files.
 * The drafter is part of the model's own checkpoint.
 *
 * The expected ids are those of transformers (tests/data/glm-ocr/reference.json). Prompt 5 there has a picture. So it
 * shows which ids the command must make from a text and a picture. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun.h"
#include "tests/support/command.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define GLM     "tests/data/glm-ocr"
#define PICTURE GLM "/image/digits.png"
#define PAIR    GLM "/model-bf16.gguf --mmproj " GLM "/mmproj-bf16.gguf"

/* Writes two lists of ids in the format of the command line: the ids of prompt 5, and the ids of the text that follows
 * it. */
static void reference(char *prompt, char *text, size_t size) {
    json_t *root = fr_load_json(GLM "/reference.json"), *item,
           *ids = json_array_get(json_object_get(root, "prompts"), 5);
    size_t index;
    fr_json_join(ids, json_array_size(ids), prompt, size);
    json_array_foreach (json_object_get(root, "greedy"), index, item) {
        const json_t *tokens = json_object_get(item, "tokens");
        if (json_integer_value(json_object_get(item, "prompt")) == 5) fr_json_join(tokens, 48, text, size);
    }
    snprintf(text + strlen(text), 2, "\n");
    json_decref(root);
}

START_TEST(text_of_a_picture) {
    static const char *const ways[] = {"", "--spec-type none", "--draft-max 15 --chunk 5", "--draft-max 1 -t 1"};
    const char *model = _i % 2 ? PAIR : GLM, *way = ways[_i / 2];
    char prompt[1024], text[1024];
    reference(prompt, text, sizeof text - 1);
    fr_command c = fr_command_ok(
        "generate -m %s --image " PICTURE " -p 'Text Recognition:' -n 48 --ignore-eos --output ids %s", model, way);
    ck_assert_str_eq(c.out, text);
    fr_command_free(&c);
    c = fr_command_ok("generate -m %s --image " PICTURE " --ids %s -n 48 --ignore-eos --output ids %s", model, prompt,
                      way);
    ck_assert_str_eq(c.out, text);
    fr_command_free(&c);
}
END_TEST

/* The verb logits must run the vision encoder too. The id with the largest logit in the last row must be the first id
 * of the text. */
START_TEST(logits_of_a_picture) {
    char prompt[1024], text[1024];
    float rows[512];
    reference(prompt, text, sizeof text - 1);
    fr_command c = fr_command_ok("logits -m " PAIR " --image " PICTURE " --ids %s --rows last -o -", prompt);
    ck_assert_uint_eq(c.out_length, sizeof rows);
    memcpy(rows, c.out, sizeof rows);
    int best = 0;
    for (int i = 0; i < 512; i++) best = rows[i] > rows[best] ? i : best;
    ck_assert_int_eq(best, (int)strtol(text, NULL, 10));
    fr_command_free(&c);
}
END_TEST

/* Runs the prompt through the library, and writes the ids that the library generates to `list`. Before that, each image
 * token of the prompt is repeated as often as its picture needs. */
static void text_of_the_library(const char *const *paths, size_t count, const char *prompt, char *list, size_t size) {
    fr_model *model;
    fr_session *session;
    fr_picture *pictures[2];
    int32_t *tokens, ids[1024], step[FR_STEP_MAX], image;
    size_t length = 0, given, accepted, used = 0, picture = 0, n = 0;
    ck_assert_int_eq(fr_model_open(GLM, NULL, &model), FR_OK);
    for (size_t i = 0; i < count; i++) ck_assert_int_eq(fr_picture_open(paths[i], model, &pictures[i]), FR_OK);
    fr_status status = fr_tokenize(fr_model_tokenizer(model), prompt, strlen(prompt), false, true, &tokens, &given);
    ck_assert_int_eq(status, FR_OK);
    image = (int32_t)fr_model_fact(model, FR_FACT_IMAGE_TOKEN);
    for (size_t i = 0; i < given; i++)
        for (size_t k = tokens[i] == image ? fr_picture_tokens(pictures[picture++]) : 1; k > 0; k--)
            ids[length++] = tokens[i];
    ck_assert_uint_eq(picture, count);
    ck_assert_int_eq(fr_session_open(model, NULL, NULL, &session), FR_OK);
    ck_assert_int_eq(fr_session_show(session, (const fr_picture *const *)pictures, count), FR_OK);
    ck_assert_int_eq(fr_session_prompt(session, ids, length), FR_OK);
    for (; n < 24; n++) {
        ck_assert_int_eq(fr_session_step(session, step, 1, &given, &accepted), FR_OK);
        if (given == 0) break;
        used += (size_t)snprintf(list + used, size - used, n ? ",%d" : "%d", step[0]);
    }
    snprintf(list + used, size - used, "\n");
    fr_free(tokens);
    fr_session_close(session);
    for (size_t i = 0; i < count; i++) fr_picture_close(pictures[i]);
    fr_model_close(model);
}

#define SHOWN  "<|begin_of_image|><|image|><|end_of_image|>"
#define BEFORE "[gMASK]<sop><|user|>\n"
#define BEHIND "<|assistant|>\n"

/* Several --image options must keep their order. The pictures come before the text. If the text has image tokens, the
 * pictures take the places of these tokens. */
START_TEST(several_pictures) {
    static const char *const paths[] = {PICTURE, "tests/data/images/jpeg-70x50.jpg"};
    const char *const swapped[] = {paths[1], paths[0]};
    char both[1024], other[1024], line[1024];
    text_of_the_library(paths, 2, BEFORE SHOWN SHOWN "Compare:" BEHIND, both, sizeof both);
    text_of_the_library(swapped, 2, BEFORE SHOWN SHOWN "Compare:" BEHIND, other, sizeof other);
    ck_assert_str_ne(both, other);
    fr_command c = fr_command_ok("generate -m " GLM " --image %s --image %s -p Compare: -n 24 --output ids --quiet",
                                 paths[0], paths[1]);
    ck_assert_str_eq(c.out, both);
    fr_command_free(&c);
    c = fr_command_ok("generate -m " GLM " --image %s --image %s -p Compare: -n 24 --output ids --quiet", paths[1],
                      paths[0]);
    ck_assert_str_eq(c.out, other);
    fr_command_free(&c);

    text_of_the_library(paths, 2, BEFORE SHOWN "is " SHOWN "?" BEHIND, both, sizeof both);
    snprintf(line, sizeof line, "generate -m " GLM " --image %s --image %s -f - -n 24 --output ids --quiet", paths[0],
             paths[1]);
    c = fr_command_feed(BEFORE SHOWN "is " SHOWN "?" BEHIND, "%s", line);
    ck_assert_str_eq(c.out, both);
    fr_command_free(&c);
    c = fr_command_run(line, BEFORE SHOWN "is one missing?" BEHIND);
    ck_assert_int_eq(c.status, 1);
    ck_assert_msg(strstr(c.err, "2 images given") != NULL, "%s", c.err);
    fr_command_free(&c);

    text_of_the_library(paths, 2, BEFORE "is " SHOWN " or " SHOWN "?" BEHIND, both, sizeof both);
    c = fr_command_ok("generate -m " GLM " --image %s --image %s --chat -p 'is <|image|> or <|image|>?' -n 24 "
                      "--output ids --quiet",
                      paths[0], paths[1]);
    ck_assert_str_eq(c.out, both);
    fr_command_free(&c);

    static const char *const chats[] = {"--chat -p 'is {image} or {image}?'", "--chat -p 'is {image} or <|image|>?'",
                                        "-p '"
                                        "[gMASK]<sop><|user|>\n"
                                        "is {image} or {image}?" BEHIND "' -e"};
    for (size_t i = 0; i < sizeof chats / sizeof *chats; i++) {
        c = fr_command_ok("generate -m " GLM " --image %s --image %s %s -n 24 --output ids --quiet", paths[0], paths[1],
                          chats[i]);
        ck_assert_str_eq(c.out, both);
        fr_command_free(&c);
    }
    c = fr_command_run("generate -m " GLM " --image " PICTURE " -p '{image} {image}' -n 2 --quiet", NULL);
    ck_assert_int_eq(c.status, 1);
    ck_assert_msg(strstr(c.err, "1 images given") != NULL, "%s", c.err);
    fr_command_free(&c);

    fr_command one = fr_command_ok("generate -m " GLM " --image %s --image %s -p Compare: -n 3", paths[0], paths[1]);
    c = fr_command_feed("Compare:\n", "chat --temp 0 -m " GLM " --image %s --image %s -n 3", paths[0], paths[1]);
    ck_assert_str_eq(c.out, one.out);
    fr_command_free(&one);
    fr_command_free(&c);
}
END_TEST

/* The numbers of tokens must be those of smart_resize in transformers' GLM processor with the same limits. */
START_TEST(tokens_of_pictures) {
    static const struct {
        const char *limits, *tokens, *photo;
    } cases[] = {
        {"",
         "391 for a picture of 640 x 480, 999 for a picture of 1024 x 768, 2691 for a picture of 1920 x 1080, 7500 for "
         "a picture of 4032 x 3024",
         "70 x 50 pixels, 12 tokens"},
        {"--image-max-pixels 20000",
         "20 for a picture of 640 x 480, 20 for a picture of 1024 x 768, 18 for a picture of "
         "1920 x 1080, 20 for",
         "70 x 50 pixels, 12 tokens"},
        {"--image-max-tokens 9",
         "6 for a picture of 640 x 480, 6 for a picture of 1024 x 768, 8 for a picture of 1920 x "
         "1080, 6 for",
         "70 x 50 pixels, 12 tokens"},
        {"--image-min-tokens 400 --image-max-tokens 402", "", "70 x 50 pixels, 408 tokens"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int pair = 0; pair < 2; pair++) {
            fr_command c = fr_command_ok("inspect -m %s --image tests/data/images/webp-70x50.webp %s",
                                         pair ? PAIR : GLM, cases[i].limits);
            ck_assert_msg(strstr(c.out, cases[i].tokens) && strstr(c.out, cases[i].photo), "%s", c.out);
            fr_command_free(&c);
        }
    static const char *const refused[][2] = {
        {"--image-max-tokens 9 --image-max-pixels 4444", "image-max-pixels and image-max-tokens limit the same"},
        {"--image-max-pixels 3", "image-max-pixels 3 is less than the 784 pixels of one token"},
        {"--image-min-tokens 9 --image-max-tokens 8", "at least 7056 pixels and at most 6272"},
        {"--image README.md", "README.md: neither a PNG"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char line[256];
        snprintf(line, sizeof line, "inspect -m " GLM " %s", refused[i][0]);
        fr_command c = fr_command_run(line, NULL);
        ck_assert_int_eq(c.status, 1);
        ck_assert_msg(strstr(c.err, refused[i][1]) != NULL, "%s", c.err);
        fr_command_free(&c);
    }
}
END_TEST

/* The number of multiply-adds follows from the shape: 2 layers of width 64, 2 heads, a feed-forward of width 128 with a
 * gate, and 48 patches of 3 * 2 * 14 * 14 values. The time is only an estimate. So the test checks only that there is
 * one, and that it grows with the work. */
START_TEST(cost_of_pictures) {
    const double layer = 4.0 * 64 * 64 + 3.0 * 64 * 128, attention = 2.0 * 48 * 48 * 64, embedding = 1176.0 * 64;
    const double expected = 48 * embedding + 2 * (48 * layer + attention);
    fr_command words = fr_command_ok("inspect -m " GLM " --image tests/data/images/webp-70x50.webp");
    ck_assert_msg(strstr(words.out, "0.00813 billion multiply-adds in the tower's layers, about ") != NULL, "%s",
                  words.out);
    fr_command_free(&words);
    double seconds[2];
    for (size_t i = 0; i < 2; i++) {
        fr_command c = fr_command_ok("inspect -m " GLM " --image tests/data/images/webp-70x50.webp -o json %s",
                                     i ? "--image-min-tokens 400 --image-max-tokens 402" : "");
        json_t *root = json_loads(c.out, 0, NULL), *list = json_object_get(root, "pictures");
        json_t *last = json_array_get(list, json_array_size(list) - 1);
        seconds[i] = json_real_value(json_object_get(last, "tower_seconds_estimated"));
        if (i == 0) ck_assert_double_eq(json_real_value(json_object_get(last, "tower_multiply_adds")), expected);
        json_decref(root);
        fr_command_free(&c);
    }
    ck_assert(seconds[0] > 0 && seconds[0] < 1 && seconds[1] > 5 * seconds[0]);
}
END_TEST

/* A line may consist of the path of a picture. Terminals write such a line when a file is dropped on them. The chat
 * must show the picture, in each form in which terminals write the path. Other lines with paths must stay text. */
START_TEST(dropped_paths_are_pictures) {
    char folder[] = "/tmp/forerun dropped-XXXXXX", path[128], lines[1024];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a b.png", folder);
    snprintf(lines, sizeof lines, "cp " PICTURE " '%s' && echo no picture > '%s/c.png'", path, folder);
    ck_assert_int_eq(system(lines), 0);
    const char *name = folder + strlen("/tmp/forerun dropped-");
    snprintf(lines, sizeof lines,
             "'%s'\n/tmp/forerun\\ dropped-%s/a\\ b.png \nfile:///tmp/forerun%%20dropped-%s/a%%20b.png\n"
             "'%s' and more\n'%s/c.png'\nRead:\n",
             path, name, name, path, folder);
    fr_command c = fr_command_feed(lines, "chat --temp 0 -m " GLM " -n 3");
    size_t shown = 0;
    for (const char *at = c.err; (at = strstr(at, "tokens, in the next turn")); at++) shown++;
    ck_assert_msg(shown == 3, "%zu pictures\n%s", shown, c.err);
    fr_command_free(&c);
    snprintf(lines, sizeof lines, "rm -r '%s'", folder);
    ck_assert_int_eq(system(lines), 0);
}
END_TEST

/* A lower pixel limit must give fewer image tokens in the prompt, and so another text. */
START_TEST(limits_reach_the_prompt) {
    fr_command small = fr_command_ok("generate -m " GLM " --image " PICTURE " -p Read: -n 8 --ignore-eos --output json "
                                     "--image-max-pixels 7000"),
               whole =
                   fr_command_ok("generate -m " GLM " --image " PICTURE " -p Read: -n 8 --ignore-eos --output json");
    json_t *few = json_loads(small.out, 0, NULL), *many = json_loads(whole.out, 0, NULL);
    json_int_t less, more;
    ck_assert_int_eq(json_unpack(few, "{s:{s:I}}", "stats", "prompt_tokens", &less), 0);
    ck_assert_int_eq(json_unpack(many, "{s:{s:I}}", "stats", "prompt_tokens", &more), 0);
    ck_assert_int_lt(less, more);
    json_decref(few);
    json_decref(many);
    fr_command_free(&small);
    fr_command_free(&whole);
}
END_TEST

#define OPENING "[gMASK]<sop><|user|>\n<|begin_of_image|><|image|><|end_of_image|>Text Recognition:<|assistant|>\n"

/* The picture belongs to the first turn and stays in the history. So each reply of chat must equal the answer that
 * generate gives to the whole conversation so far. Only three tokens are compared, because the fourth token of this
 * text is half a character. */
START_TEST(chat_about_a_picture) {
    fr_command one = fr_command_ok("generate -m %s --image " PICTURE " -p 'Text Recognition:' -n 3", PAIR);
    fr_command chat =
        fr_command_feed("Text Recognition:\nAnd then?\n", "chat --temp 0 -m %s --image " PICTURE " -n 3", PAIR);
    ck_assert_msg(strncmp(chat.out, one.out, one.out_length) == 0, "%s is not %s", chat.out, one.out);
    char history[2048];
    snprintf(history, sizeof history, OPENING "%.*s<|user|>\nAnd then?<|assistant|>\n", (int)one.out_length - 1,
             one.out);
    fr_command two = fr_command_feed(history, "generate -m %s --image " PICTURE " -f - -n 3", PAIR);
    ck_assert_str_eq(chat.out + one.out_length, two.out);
    fr_command_free(&one);
    fr_command_free(&two);
    fr_command_free(&chat);
}
END_TEST

#define SECOND "tests/data/images/jpeg-70x50.jpg"
#define ASKED  "<|user|>\n<|begin_of_image|><|image|><|end_of_image|>"
#define READ   "Text Recognition:"
#define SHOW   "/image " PICTURE "\n" READ "\n"
#define REPLY  "<|assistant|>\n"

/* Runs a chat with these lines. Its last answer must be the answer that generate gives to this history. */
static void check_last_answer(const char *lines, const char *history, const char *images, const char *remark) {
    fr_command chat = fr_command_feed(lines, "chat --temp 0 -m " GLM " -n 2 --no-think");
    fr_command last = fr_command_feed(history, "generate -m " GLM " %s -f - -n 2 --quiet", images);
    ck_assert_uint_ge(chat.out_length, last.out_length);
    ck_assert_msg(strcmp(chat.out + chat.out_length - last.out_length, last.out) == 0, "%s: %s, not %s", lines,
                  chat.out, last.out);
    ck_assert_msg(strstr(chat.err, remark) != NULL, "%s", chat.err);
    fr_command_free(&chat);
    fr_command_free(&last);
}

/* A picture belongs to the turn that is typed after the command /image. Each answer must be the answer to all turns
 * that were not undone. */
START_TEST(pictures_in_a_chat) {
    fr_command first = fr_command_ok("generate -m " GLM " --image " PICTURE " -p '" READ "' -n 2 --quiet");
    fr_command hello = fr_command_ok("generate -m " GLM " --chat -p Say. -n 2 --no-think");
    char history[4096], past[1024];
    snprintf(past, sizeof past, "[gMASK]<sop>" ASKED READ REPLY "%.*s", (int)first.out_length - 1, first.out);
    const char *one = "--image " PICTURE, *two = "--image " PICTURE " --image " SECOND;

    check_last_answer(SHOW, "[gMASK]<sop>" ASKED READ REPLY, one, "tokens");
    snprintf(history, sizeof history, "%s" ASKED "And this?<|assistant|>\n", past);
    check_last_answer(SHOW "/image " SECOND " \nAnd this?\n", history, two, "tokens");
    check_last_answer(SHOW "/image " PICTURE "\nAnd this?\n/undo\n/image " SECOND "\nAnd this?\n", history, two,
                      "the conversation has 1 turn\n");
    snprintf(history, sizeof history, "%s<|user|>\nAnd this?<|assistant|>\n", past);
    check_last_answer(SHOW "/image " SECOND "\nWhat?\n/undo\nAnd this?\n", history, one, "the last turn is taken back");
    check_last_answer(SHOW "/image " SECOND "\n/undo\nAnd this?\n", history, one,
                      "the pictures for the next turn are taken back");
    check_last_answer(SHOW "/image nothing.png\nAnd this?\n", history, one, "nothing.png: ");
    check_last_answer(SHOW "/clear\nSay.\n", "[gMASK]<sop><|user|>Say.<|assistant|></think>", "",
                      "forgotten; the conversation has 0 turns");
    snprintf(history, sizeof history, "[gMASK]<sop><|user|>\nSay.<|assistant|>\n%.*s" ASKED READ REPLY,
             (int)hello.out_length - 1, hello.out);
    ck_assert_ptr_null(strchr(hello.out, ' ')); /* the history above contains the answer unchanged. This is right only
                                                 * if the answer has no blanks, because the template could trim
                                                 * blanks */
    check_last_answer("Say.\n/image " PICTURE "\n" READ "\n", history, one, "tokens");
    fr_command_free(&first);
    fr_command_free(&hello);
}
END_TEST

/* A turn drops older turns to make room. The pictures of these turns must be dropped too. The answers must be those of
 * a chat that saw only the second picture. */
START_TEST(a_dropped_turn_takes_its_pictures) {
    const char *options = "-n 8 --no-think -c 60 --context-shift --stats";
    fr_command c =
        fr_command_feed(SHOW "/image " SECOND "\nAnd this?\nMore?\n", "chat --temp 0 -m " GLM " %s", options);
    fr_command fresh = fr_command_feed("/image " SECOND "\nAnd this?\nMore?\n", "chat --temp 0 -m " GLM " %s", options);
    ck_assert_msg(strstr(c.err, "the oldest turn is dropped") != NULL, "%s", c.err);
    ck_assert_uint_gt(c.out_length, fresh.out_length);
    ck_assert_str_eq(c.out + c.out_length - fresh.out_length, fresh.out);
    fr_command_free(&c);
    fr_command_free(&fresh);
}
END_TEST

/* Each of these wrong lines must give one error line, and the chat must continue. */
START_TEST(what_is_no_picture_does_not_end_a_chat) {
    static const char *const lines[][3] = {
        {"/image nothing.png", "", "nothing.png"},
        {"/image " GLM "/config.json", "", "config.json"},
        {"/image " GLM, "", "glm-ocr"},
        {"Is <|image|> one?", "--parse-special", "more than the 0 images given"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char input[256], line[256];
        snprintf(input, sizeof input, "%s\nHello.\n", lines[i][0]);
        snprintf(line, sizeof line, "chat --temp 0 -m " GLM " -n 2 %s", lines[i][1]);
        fr_command c = fr_command_run(line, input), plain;
        plain = fr_command_feed("Hello.\n", "chat --temp 0 -m " GLM " -n 2");
        ck_assert_str_eq(c.out, plain.out);
        ck_assert_msg(strstr(c.err, lines[i][2]) != NULL, "%s: %s", lines[i][0], c.err);
        ck_assert_int_eq(c.status, 0);
        ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
        fr_command_free(&c);
        fr_command_free(&plain);
    }
}
END_TEST

START_TEST(a_chat_with_a_cache_takes_no_pictures) {
    char cache[64], line[256];
    snprintf(cache, sizeof cache, "/tmp/forerun-picture-%d", (int)getpid());
    snprintf(line, sizeof line, "chat --temp 0 -m " GLM " -n 2 --prompt-cache %s", cache);
    fr_command c = fr_command_run(line, "/image " PICTURE "\nHello.\n");
    fr_command plain = fr_command_feed("Hello.\n", "chat --temp 0 -m " GLM " -n 2");
    ck_assert_str_eq(c.out, plain.out);
    ck_assert_int_eq(c.status, 0);
    ck_assert_ptr_nonnull(strstr(c.err, "can't be saved yet"));
    ck_assert_int_eq(unlink(cache), 0);
    fr_command_free(&plain);
    fr_command_free(&c);
    snprintf(line, sizeof line, "chat --temp 0 -m " GLM " --image " PICTURE " --prompt-cache %s", cache);
    c = fr_command_run(line, "x\n");
    ck_assert_int_eq(c.status, 2);
    ck_assert_str_eq(c.out, "");
    ck_assert_ptr_nonnull(strstr(c.err, "can't be saved yet"));
    fr_command_free(&c);
}
END_TEST

START_TEST(as_many_pictures_as_there_may_be) {
    char lines[8192] = "";
    for (size_t i = 0; i < 65; i++) snprintf(lines + strlen(lines), 64, "/image " PICTURE "\n");
    snprintf(lines + strlen(lines), 64, "/undo\nHello.\n");
    fr_command c = fr_command_feed(lines, "chat --temp 0 -m " GLM " -n 2"), plain;
    plain = fr_command_feed("Hello.\n", "chat --temp 0 -m " GLM " -n 2");
    ck_assert_str_eq(c.out, plain.out);
    ck_assert_ptr_nonnull(strstr(c.err, "64 pictures already"));
    fr_command_free(&c);
    fr_command_free(&plain);
}
END_TEST

/* This drafter is part of the model's own checkpoint, so it has no path of its own. The trace must name the model's
 * folder instead. */
START_TEST(a_trace_names_the_drafter) {
    char path[] = "/tmp/forerun-trace-XXXXXX", line[512] = "";
    close(mkstemp(path));
    fr_command c = fr_command_ok("generate -m " GLM " --image " PICTURE " -p x -n 4 --trace %s", path);
    FILE *trace = fopen(path, "r");
    ck_assert(trace && fgets(line, sizeof line, trace));
    ck_assert_msg(strstr(line, "\"drafter\":\"" GLM "\"") != NULL, "%s", line);
    fclose(trace);
    fr_command_free(&c);
    unlink(path);
}
END_TEST

START_TEST(stats_have_all_four_times) {
    fr_command c = fr_command_ok("generate -m " GLM " --image " PICTURE " -p x -n 20 --ignore-eos --stats");
    static const char *const lines[] = {"vision  ", "prompt  ", "target  ", "drafts  "};
    for (size_t i = 0; i < 4; i++) ck_assert_msg(strstr(c.err, lines[i]) != NULL, "%s: %s", lines[i], c.err);
    fr_command_free(&c);
}
END_TEST

/* If a model has a vision encoder, inspect must count it. */
START_TEST(inspect_counts_the_tower_in) {
    fr_command c = fr_command_ok("inspect -m " GLM);
    ck_assert_ptr_nonnull(strstr(c.out, "\ntower          2 layers, "));
    ck_assert_ptr_null(strstr(c.out, "skipped"));
    ck_assert_ptr_null(strstr(c.out, "unused"));
    fr_command_free(&c);
}
END_TEST

/* Each of these command lines must give one error line and exit status 1. */
START_TEST(pictures_that_do_not_fit) {
    static const char *const lines[][2] = {
        {"generate -m " GLM " -n 1 --ids 500,507,507,504", "more than the 0 images given"},
        {"generate -m " GLM " -n 1 --ids 500,507,507,504 --image " PICTURE, "needs 4 x 5 = 20 image tokens"},
        {"generate -m " GLM " -n 1 --ids 500,504 --image " PICTURE, "1 images given"},
        {"generate -m " GLM " -n 1 -p x --image " GLM "/config.json", "config.json"},
        {"generate -m " GLM " -n 1 -p x --image " GLM "/nothing.png", "nothing.png"},
        {"generate -m " GLM "/model-bf16.gguf -n 1 -p x --image " PICTURE, "has no vision tower"},
        {"generate -m " PAIR " -n 1 --ids 500,507,507,504", "more than the 0 images given"},
        {"generate -m " GLM "/mmproj-bf16.gguf -n 1 -p x", "with its text model: give a vision tower with --mmproj"},
        {"generate -m " GLM " --mmproj " GLM "/mmproj-bf16.gguf -n 1 -p x", "has a vision tower of its own"},
        {"inspect -m " GLM "/mmproj-bf16.gguf --mmproj " GLM "/mmproj-bf16.gguf", "is a vision tower (clip)"},
        {"generate -m " GLM "/model-bf16.gguf -mm " PICTURE " -n 1 -p x", "digits.png"},
        {"generate " MODEL "-n 1 -p x --image " PICTURE, "has no vision tower"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        fr_command c = fr_command_run(lines[i][0], NULL);
        ck_assert_msg(c.status == 1, "%s: exit %d", lines[i][0], c.status);
        ck_assert_msg(strstr(c.err, lines[i][1]) != NULL, "%s: %s", lines[i][0], c.err);
        ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
        fr_command_free(&c);
    }
}
END_TEST

FR_SUITE("cli_picture") {
    TCase *cases = tcase_create("picture");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, text_of_a_picture, 0, 8);
    tcase_add_test(cases, logits_of_a_picture);
    tcase_add_test(cases, several_pictures);
    tcase_add_test(cases, tokens_of_pictures);
    tcase_add_test(cases, cost_of_pictures);
    tcase_add_test(cases, limits_reach_the_prompt);
    tcase_add_test(cases, dropped_paths_are_pictures);
    tcase_add_test(cases, chat_about_a_picture);
    tcase_add_test(cases, pictures_in_a_chat);
    tcase_add_test(cases, a_dropped_turn_takes_its_pictures);
    tcase_add_test(cases, what_is_no_picture_does_not_end_a_chat);
    tcase_add_test(cases, a_chat_with_a_cache_takes_no_pictures);
    tcase_add_test(cases, a_trace_names_the_drafter);
    tcase_add_test(cases, as_many_pictures_as_there_may_be);
    tcase_add_test(cases, stats_have_all_four_times);
    tcase_add_test(cases, inspect_counts_the_tower_in);
    tcase_add_test(cases, pictures_that_do_not_fit);
    suite_add_tcase(suite, cases);
}
