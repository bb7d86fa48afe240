/* Holds forerun's own chat templates, in Jinja (chat_families.h). */
#include "src/language/chat/chat_families.h"

#include <string.h>

/* Defines the macro that prints a content. A content is a text, or a list of texts and pictures; `trim` is a filter
 * that is applied to each text of a list. */
#define SAID(picture, trim)                                                 \
    "{%- macro said(content) -%}\n"                                         \
    "    {%- if content is string -%}{{ content }}\n"                       \
    "    {%- elif content is iterable and content is not mapping -%}\n"     \
    "        {%- for part in content -%}\n"                                 \
    "            {%- if part is string -%}{{ part }}\n"                     \
    "            {%- elif part.type == 'text' -%}{{ part.text" trim " }}\n" \
    "            {%- elif part.type == 'image' -%}" picture "\n"            \
    "            {%- endif -%}\n"                                           \
    "        {%- endfor -%}\n"                                              \
    "    {%- endif -%}\n"                                                   \
    "{%- endmacro -%}\n"

#define NO_PICTURE "{{ raise_exception('this chat template shows no pictures') }}"

static const char gemma4[] =
    SAID("{{ '<|image|>' }}",
         " | trim") "{%- macro aloud(content) -%}\n"
                    "    {%- for part in said(content).split('<channel|>') -%}{{ part.split('<|channel>')[0] }}{%- "
                    "endfor -%}\n"
                    "{%- endmacro -%}\n"
                    "{{- bos_token -}}\n"
                    "{%- set thinks = enable_thinking is defined and enable_thinking -%}\n"
                    "{%- if thinks -%}{{ '<|turn>system\\n<|think|>\\n' }}\n"
                    "    {%- if messages[0].role == 'system' -%}{{ said(messages[0].content) | trim }}{%- endif -%}\n"
                    "    {{- '<turn|>\\n' -}}\n"
                    "{%- endif -%}\n"
                    "{%- for message in (messages[1:] if thinks and messages[0].role == 'system' else messages) -%}\n"
                    "    {%- if message.role == 'assistant' -%}\n"
                    "        {{- '<|turn>model\\n' + aloud(message.content) | trim + '<turn|>\\n' -}}\n"
                    "    {%- else -%}\n"
                    "        {{- '<|turn>' + message.role + '\\n' + said(message.content) | trim + '<turn|>\\n' -}}\n"
                    "    {%- endif -%}\n"
                    "{%- endfor -%}\n"
                    "{%- if add_generation_prompt -%}\n"
                    "    {{- '<|turn>model\\n' + ('' if thinks else '<|channel>thought\\n<channel|>') -}}\n"
                    "{%- endif -%}\n";

/* GLM's turns. In conversations with pictures the turns have the form of GLM-OCR, which does not reason: a line break
 * follows each role, and <think> is not written. */
static const char glm[] =
    SAID("{{ '<|begin_of_image|><|image|><|end_of_image|>' }}",
         "") "{%- set plain = pictures is defined and pictures -%}\n"
             "{%- set line = '\\n' if plain else '' -%}\n"
             "{{- '[gMASK]<sop>' -}}\n"
             "{%- for message in messages -%}\n"
             "    {%- if message.role == 'system' -%}{{ '<|system|>' + line + said(message.content) }}\n"
             "    {%- elif message.role == 'user' -%}{{ '<|user|>' + line + said(message.content) }}\n"
             "    {%- elif message.role == 'assistant' -%}\n"
             "        {{- '<|assistant|>' + (line if plain else '</think>') -}}\n"
             "        {{- said(message.content).split('</think>')[-1] | trim -}}\n"
             "    {%- endif -%}\n"
             "{%- endfor -%}\n"
             "{%- if add_generation_prompt -%}\n"
             "    {%- set thinks = not (enable_thinking is defined and not enable_thinking) -%}\n"
             "    {{- '<|assistant|>' + (line if plain else '<think>' if thinks else '</think>') -}}\n"
             "{%- endif -%}\n";

static const char llama3[] = SAID(
    NO_PICTURE,
    "") "{{- bos_token -}}\n"
        "{%- for message in messages -%}\n"
        "    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' -}}\n"
        "    {{- said(message.content) | trim + '<|eot_id|>' -}}\n"
        "{%- endfor -%}\n"
        "{%- if add_generation_prompt -%}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif -%}\n";

/* Qwen's turns. The template drops the thoughts of answers before the user's last question, and keeps those after
 * it. */
static const char qwen[] = SAID(
    NO_PICTURE, "") "{%- set asked = namespace(last=-1) -%}\n"
                    "{%- for message in messages -%}\n"
                    "    {%- if message.role == 'user' -%}{%- set asked.last = loop.index0 -%}{%- endif -%}\n"
                    "{%- endfor -%}\n"
                    "{%- for message in messages -%}\n"
                    "    {%- set text = said(message.content) | trim -%}\n"
                    "    {%- set parts = text.split('</think>') -%}\n"
                    "    {{- '<|im_start|>' + message.role + '\\n' -}}\n"
                    "    {%- if message.role != 'assistant' -%}{{ text }}\n"
                    "    {%- else -%}\n"
                    "        {%- set thought = parts[0].split('<think>')[-1] | trim if parts | length > 1 else '' -%}\n"
                    "        {{- '<think>\\n' + thought + '\\n</think>\\n\\n' if loop.index0 > asked.last else '' -}}\n"
                    "        {{- parts[-1].lstrip('\\n') -}}\n"
                    "    {%- endif -%}\n"
                    "    {{- '<|im_end|>\\n' -}}\n"
                    "{%- endfor -%}\n"
                    "{%- if add_generation_prompt -%}\n"
                    "    {%- set thinks = not (enable_thinking is defined and not enable_thinking) -%}\n"
                    "    {{- '<|im_start|>assistant\\n<think>\\n' + ('' if thinks else '\\n</think>\\n\\n') -}}\n"
                    "{%- endif -%}\n";

static const char chatml[] =
    SAID(NO_PICTURE, "") "{%- for message in messages -%}\n"
                         "    {{- '<|im_start|>' + message.role + '\\n' + said(message.content) + '<|im_end|>\\n' -}}\n"
                         "{%- endfor -%}\n"
                         "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}\n";

static const fr_chat_family families[] = {
    {"Gemma 4", {"<|turn>", "<turn|>"}, "<bos>", "<|image|>", gemma4},
    {"GLM", {"<|user|>", "[gMASK]"}, "", "<|image|>", glm},
    {"Llama 3", {"<|start_header_id|>", "<|eot_id|>"}, "<|begin_of_text|>", NULL, llama3},
    {"Qwen3.5", {"<|im_start|>", "<think>"}, "", NULL, qwen},
    {"ChatML", {"<|im_start|>", "<|im_end|>"}, "", NULL, chatml},
};

const fr_chat_family *fr_chat_family_find(const fr_vocabulary *vocabulary) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const char *const *tokens = families[i].tokens;
        if (fr_vocabulary_find(vocabulary, tokens[0], strlen(tokens[0])) >= 0 &&
            fr_vocabulary_find(vocabulary, tokens[1], strlen(tokens[1])) >= 0)
            return &families[i];
    }
    return NULL;
}
