/* Recognises the special tokens of conversation turns (turn_tokens.h). */
#include "formats/turn_tokens.h"

/* FULLWIDTH VERTICAL LINE and LOWER ONE EIGHTH BLOCK, which occur in the texts of DeepSeek's tokens. */
#define BAR   "\xef\xbd\x9c"
#define BLANK "\xe2\x96\x81"

static const char *const control[] = {"<|im_start|>",
                                      "<|im_end|>",
                                      "<|im_sep|>",
                                      "<|endoftext|>",
                                      "<|begin_of_text|>",
                                      "<|end_of_text|>",
                                      "<|start_header_id|>",
                                      "<|end_header_id|>",
                                      "<|eot_id|>",
                                      "<|eom_id|>",
                                      "<|python_tag|>",
                                      "<|header_start|>",
                                      "<|header_end|>",
                                      "<|eot|>",
                                      "<|eom|>",
                                      "<start_of_turn>",
                                      "<end_of_turn>",
                                      "<|turn>",
                                      "<turn|>",
                                      "<|system|>",
                                      "<|user|>",
                                      "<|assistant|>",
                                      "<|observation|>",
                                      "<|tool|>",
                                      "<|tool>",
                                      "<tool|>",
                                      "<|end|>",
                                      "<|return|>",
                                      "<|call|>",
                                      "<|calls|>",
                                      "<|flush|>",
                                      "[gMASK]",
                                      "<sop>",
                                      "<eop>",
                                      "<|start_of_role|>",
                                      "<|end_of_role|>",
                                      "[INST]",
                                      "[/INST]",
                                      "[SYSTEM_PROMPT]",
                                      "[/SYSTEM_PROMPT]",
                                      "[AVAILABLE_TOOLS]",
                                      "[/AVAILABLE_TOOLS]",
                                      "[TOOL_RESULTS]",
                                      "[/TOOL_RESULTS]",
                                      "<|START_OF_TURN_TOKEN|>",
                                      "<|END_OF_TURN_TOKEN|>",
                                      "<|SYSTEM_TOKEN|>",
                                      "<|USER_TOKEN|>",
                                      "<|CHATBOT_TOKEN|>",
                                      "<|im_system|>",
                                      "<|im_user|>",
                                      "<|im_assistant|>",
                                      "<|im_middle|>",
                                      "[BOS]",
                                      "[EOS]",
                                      "[EOT]",
                                      "<EOT>",
                                      "_<EOT>",
                                      "<end_of_utterance>",
                                      "[|system|]",
                                      "[|user|]",
                                      "[|assistant|]",
                                      "[|endofturn|]",
                                      "]~b]",
                                      "[e~[",
                                      "<" BAR "begin" BLANK "of" BLANK "sentence" BAR ">",
                                      "<" BAR "end" BLANK "of" BLANK "sentence" BAR ">",
                                      "<" BAR "User" BAR ">",
                                      "<" BAR "Assistant" BAR ">",
                                      "<" BAR "fim" BLANK "begin" BAR ">",
                                      "<" BAR "fim" BLANK "hole" BAR ">",
                                      "<" BAR "fim" BLANK "end" BAR ">",
                                      "<|fim_prefix|>",
                                      "<|fim_suffix|>",
                                      "<|fim_middle|>",
                                      "<|fim_pad|>",
                                      "<|repo_name|>",
                                      "<|file_sep|>",
                                      "<fim_prefix>",
                                      "<fim_suffix>",
                                      "<fim_middle>",
                                      "<fim_pad>",
                                      "<fim-prefix>",
                                      "<fim-suffix>",
                                      "<fim-middle>",
                                      "<fim-pad>",
                                      "<|fim_repo|>",
                                      "<fim-repo>",
                                      "<reponame>",
                                      "<|prefix|>",
                                      "<|suffix|>",
                                      "<|middle|>",
                                      "<|code_prefix|>",
                                      "<|code_suffix|>",
                                      "<|code_middle|>",
                                      "<|image>",
                                      "<image|>",
                                      "<|image|>",
                                      "<|audio>",
                                      "<audio|>",
                                      "<|audio|>",
                                      "<|video>",
                                      "<video|>",
                                      "<|video|>",
                                      "<|begin_of_image|>",
                                      "<|end_of_image|>",
                                      "<|begin_of_video|>",
                                      "<|end_of_video|>",
                                      "<|vision_start|>",
                                      "<|vision_end|>",
                                      "<|vision_pad|>",
                                      "<|image_pad|>",
                                      "<|video_pad|>"};

static const char *const inside[] = {"<think>",
                                     "</think>",
                                     "<tool_call>",
                                     "</tool_call>",
                                     "<tool_response>",
                                     "</tool_response>",
                                     "<|channel|>",
                                     "<|message|>",
                                     "<|start|>",
                                     "<|constrain|>",
                                     "<|channel>",
                                     "<channel|>",
                                     "<|tool_call>",
                                     "<tool_call|>",
                                     "<|tool_response>",
                                     "<tool_response|>",
                                     "<|\"|>",
                                     "<|think|>",
                                     "[THINK]",
                                     "[/THINK]",
                                     "[TOOL_CALLS]",
                                     "<arg_key>",
                                     "</arg_key>",
                                     "<arg_value>",
                                     "</arg_value>",

                                     "<" BAR "tool" BLANK "calls" BLANK "begin" BAR ">",
                                     "<" BAR "tool" BLANK "calls" BLANK "end" BAR ">",
                                     "<" BAR "tool" BLANK "call" BLANK "begin" BAR ">",
                                     "<" BAR "tool" BLANK "call" BLANK "end" BAR ">",
                                     "<" BAR "tool" BLANK "outputs" BLANK "begin" BAR ">",
                                     "<" BAR "tool" BLANK "outputs" BLANK "end" BAR ">",
                                     "<" BAR "tool" BLANK "output" BLANK "begin" BAR ">",
                                     "<" BAR "tool" BLANK "output" BLANK "end" BAR ">",
                                     "<" BAR "tool" BLANK "sep" BAR ">"};

static const char *const ends[] = {"<|eot_id|>",
                                   "<|eom_id|>",
                                   "<|im_end|>",
                                   "<|end|>",
                                   "<|return|>",
                                   "<|call|>",
                                   "<|calls|>",
                                   "<|flush|>",
                                   "<end_of_turn>",
                                   "<|endoftext|>",
                                   "<|end_of_text|>",
                                   "<EOT>",
                                   "_<EOT>",
                                   "[EOT]",
                                   "[EOS]",
                                   "<end_of_utterance>",
                                   "<eos>",
                                   "<turn|>",
                                   "<|tool_response>",
                                   "<" BAR "end" BLANK "of" BLANK "sentence" BAR ">",
                                   "[e~[",
                                   "<|fim_pad|>",
                                   "<fim-pad>",
                                   "<fim_pad>",
                                   "<PAD>",
                                   "[PAD]",
                                   "<|fim_repo|>",
                                   "<|repo_name|>",
                                   "<fim-repo>",
                                   "<REPO>",
                                   "<reponame>",
                                   "<|file_sep|>"};

static bool is_one_of(fr_text text, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (fr_text_is(text, words[i])) return true;
    return false;
}

/* Finds the kind of a token. The first byte is compared before anything else, because vocabularies have hundreds of
 * thousands of tokens, and the first byte of most of them differs from those of turn tokens. */
fr_turn_token fr_turn_token_of(fr_text text) {
    if (text.length < 4 || !strchr("<[]_", text.bytes[0])) return FR_TURN_NONE;
    if (is_one_of(text, control, sizeof control / sizeof *control)) return FR_TURN_CONTROL;
    return is_one_of(text, inside, sizeof inside / sizeof *inside) ? FR_TURN_SHOWN : FR_TURN_NONE;
}

bool fr_ends_texts(fr_text text) {
    return text.length >= 5 && strchr("<[_", text.bytes[0]) && is_one_of(text, ends, sizeof ends / sizeof *ends);
}

static bool is_between(fr_text text, const char *open, const char *close) {
    size_t before = strlen(open), behind = strlen(close);
    return text.length > before + behind && memcmp(text.bytes, open, before) == 0 &&
           memcmp(text.bytes + text.length - behind, close, behind) == 0 && !memchr(text.bytes, ' ', text.length);
}

/* Returns true for a text with a bar on one side only, such as <|so>. The text between `open` and `close` must be a
 * single word of letters, because programming languages have operators made of these signs. */
static bool is_word_between(fr_text text, const char *open, const char *close) {
    if (!is_between(text, open, close)) return false;
    for (size_t i = strlen(open); i < text.length - strlen(close); i++) {
        char byte = text.bytes[i], letter = (char)(byte | 32);
        if ((letter < 'a' || letter > 'z') && byte != '_') return false;
    }
    return true;
}

bool fr_looks_like_turn_token(fr_text text) {
    return is_between(text, "<|", "|>") || is_between(text, "<" BAR, BAR ">") || is_word_between(text, "<|", ">") ||
           is_word_between(text, "<", "|>");
}
