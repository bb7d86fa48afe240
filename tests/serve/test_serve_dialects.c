/* Tests /v1/responses, /v1/messages, ollama's routes and /infill. Each request must be read like the equivalent request
 * for a chat or a completion. The requests have the form in which clients send them. Over HTTP the answers must be
 * equal too. test_serve_answer.c tests how answers are sent part by part. */
/* suite: threads native links=command */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/asking.h"
#include "tests/support/require.h"
#include "tests/support/server.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"
#include "tools/cli/wide_json.h"
#include "tools/serve/dialects/request_dialects.h"
#include "tools/serve/generation_request.h"
#include "tools/jobs/infill.h"
#include "tools/serve/routes.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define RESPONSES       "/v1/responses"
#define MESSAGES        "/v1/messages"

/* ---------------------------------------------------------------------------------------------------------- reading */

/* Parses JSON in which ' is written instead of ". */
static json_t *value_of(const char *text) {
    char *copy = strdup(text);
    json_error_t error;
    for (char *at = copy; *at; at++)
        if (*at == '\'') *at = '"';
    json_t *value = fr_json_load(copy, strlen(copy), &error);
    ck_assert_msg(value != NULL, "%s: %s", copy, error.text);
    free(copy);
    return value;
}

#define USER(said) "{'role': 'user', 'content': " said "}"
#define CALLED     "'tool_calls': [{'id': 'c1', 'type': 'function', 'function': {'name': 'f', 'arguments': "
#define PNG        "data:image/png;base64,AA=="

enum { RESPONSE, MESSAGE, OLLAMA_CHAT, OLLAMA_GENERATE };
static json_t *(*const readers[])(json_t *body, char *error) = {fr_responses_read, fr_messages_read,
                                                                fr_ollama_read_chat, fr_ollama_read_generate};

/* clang-format off */
static const struct {
    int dialect;
    /* chat: the chat request that the body must become; RESPONSE also adds continue_final_message */
    const char *body, *chat;
} read_cases[] = {
    {RESPONSE, "{'input': 'Hi'}", "{'messages': [" USER("'Hi'") "]}"},
    {RESPONSE, "{'model': 'm', 'stream': true, 'temperature': 0.5, 'top_p': 0.9, 'seed': 3, 'speculative.n_max': 2, "
            "'instructions': 'Be brief.', 'input': 'Hi', 'max_output_tokens': 9, 'store': false, 'metadata': {'a': "
            "'b'}, 'include': [], 'service_tier': 'auto', 'reasoning': {'effort': 'low', 'summary': 'auto'}, 'user': "
            "'u', 'truncation': 'disabled', 'previous_response_id': null, 'n': 3, 'messages': [], 'max_tokens': 5, "
            "'logprobs': 3}",
     "{'model': 'm', 'stream': true, 'temperature': 0.5, 'top_p': 0.9, 'seed': 3, 'speculative.n_max': 2, 'messages': "
     "[{'role': 'system', 'content': 'Be brief.'}, " USER("'Hi'") "], 'max_tokens': 9, 'reasoning_effort': 'low'}"},
    {RESPONSE, "{'input': [{'role': 'developer', 'content': 'D'}, {'role': 'user', 'content': [{'type': 'input_text', "
            "'text': 'a'}, {'type': 'input_image', 'detail': 'auto', 'image_url': '" PNG "'}]}, {'role': 'user', "
            "'content': 'b'}, {'type': 'reasoning', 'id': 'rs', 'summary': [], 'content': [{'type': 'reasoning_text', "
            "'text': 'hm'}]}, {'type': 'message', 'id': 'm', 'status': 'completed', 'role': 'assistant', 'content': "
            "[{'type': 'output_text', 'text': 'so', 'annotations': []}]}, {'type': 'function_call', 'id': 'fc', "
            "'call_id': 'c1', 'name': 'f', 'arguments': '{}'}, {'type': 'function_call_output', 'call_id': 'c1', "
            "'output': '7'}, {'type': 'function_call_output', 'call_id': 'c2', 'output': [{'type': 'input_text', "
            "'text': '8'}]}, {'role': 'user', 'content': 'and?'}]}",
     "{'messages': [{'role': 'developer', 'content': 'D'}, " USER("[{'type': 'text', 'text': 'a'}, {'type': "
     "'image_url', 'image_url': '" PNG "'}]") ", " USER("'b'") ", {'role': 'assistant', 'reasoning_content': 'hm', "
     "'content': 'so', " CALLED "'{}'}}]}, {'role': 'tool', 'tool_call_id': 'c1', 'content': '7'}, {'role': 'tool', "
     "'tool_call_id': 'c2', 'content': '8'}, " USER("'and?'") "]}"},
    {RESPONSE, "{'input': 'Hi', 'tools': [{'type': 'function', 'name': 'f', 'description': 'd', 'parameters': {'type': "
            "'object'}, 'strict': true}], 'tool_choice': {'type': 'function', 'name': 'f'}, 'parallel_tool_calls': "
            "false, 'text': {'format': {'type': 'json_schema', 'name': 's', 'schema': {}}, 'verbosity': 'low'}}",
     "{'messages': [" USER("'Hi'") "], 'tools': [{'type': 'function', 'function': {'name': 'f', 'description': 'd', "
     "'parameters': {'type': 'object'}, 'strict': true}}], 'tool_choice': {'type': 'function', 'name': 'f'}, "
     "'parallel_tool_calls': false, 'response_format': {'type': 'json_schema', 'name': 's', 'schema': {}}}"},
    {RESPONSE, "{'input': 'Hi', 'tools': [{'type': 'function', 'name': 'f', 'strict': false}, {'type': 'function', "
               "'name': 'g', 'strict': null}, {'type': 'namespace', 'name': 'n', 'tools': [{'type': 'function', "
               "'name': 'f', 'strict': true}]}]}",
     "{'messages': [" USER("'Hi'") "], 'tools': [{'type': 'function', 'function': {'name': 'f', 'strict': false}}, "
     "{'type': 'function', 'function': {'name': 'g'}}, {'type': 'function', 'function': {'name': 'n__f', 'strict': "
     "true}}]}"},
    {MESSAGE, "{'max_tokens': 9, 'messages': [" USER("'Hi'") ", {'role': 'developer', 'content': 'D'}, {'role': "
              "'system', 'content': [{'type': 'text', 'text': 'S'}]}], 'tools': [{'name': 'f', 'input_schema': {}, "
              "'strict': true}]}",
     "{'max_tokens': 9, 'messages': [" USER("'Hi'") ", {'role': 'system', 'content': 'D'}, {'role': 'system', "
     "'content': 'S'}], 'tools': [{'type': 'function', 'function': {'name': 'f', 'parameters': {}, 'strict': true}}]}"},
    /* The request forces a tool that another service runs. The server can't call this tool, so the model chooses among
     * the other tools. */
    {RESPONSE, "{'input': 'Hi', 'tools': [{'type': 'web_search'}, {'type': 'function', 'name': 'f'}], 'tool_choice': "
               "{'type': 'web_search'}}",
     "{'messages': [" USER("'Hi'") "], 'tools': [{'type': 'function', 'function': {'name': 'f'}}], 'tool_choice': "
     "'auto'}"},
    {RESPONSE, "{'input': 'Hi', 'tool_choice': {'type': 'mcp', 'server_label': 's', 'name': 'x'}}",
     "{'messages': [" USER("'Hi'") "], 'tool_choice': 'auto'}"},
    {RESPONSE, "{'input': 'Hi', 'tools': [{'type': 'function', 'name': 'f'}], 'tool_choice': {'type': 'allowed_tools', "
               "'mode': 'required', 'tools': [{'type': 'file_search'}]}}",
     "{'messages': [" USER("'Hi'") "], 'tools': [{'type': 'function', 'function': {'name': 'f'}}], 'tool_choice': "
     "'none'}"},
    {RESPONSE, "{'input': 'Hi', 'tools': [{'type': 'function', 'name': 'f'}], 'tool_choice': {'type': 'allowed_tools', "
               "'mode': 'required', 'tools': [{'type': 'file_search'}, {'type': 'function', 'name': 'f'}]}}",
     "{'messages': [" USER("'Hi'") "], 'tools': [{'type': 'function', 'function': {'name': 'f'}}], 'tool_choice': "
     "{'type': 'allowed_tools', 'mode': 'required', 'tools': [{'type': 'file_search'}, {'type': 'function', 'name': "
     "'f'}]}}"},
    {MESSAGE, "{'max_tokens': 9, 'messages': [" USER("'Hi'") "], 'tools': [{'type': 'web_search_20250305', 'name': "
              "'web_search'}, {'name': 'f', 'input_schema': {}}], 'tool_choice': {'type': 'tool', 'name': "
              "'web_search'}}",
     "{'max_tokens': 9, 'messages': [" USER("'Hi'") "], 'tools': [{'type': 'function', 'function': {'name': 'f', "
     "'parameters': {}}}], 'tool_choice': 'auto'}"},
    {RESPONSE, "{'input': [{'type': 'function_call', 'call_id': 'c1', 'name': 'f', 'arguments': null}]}",
     "{'messages': [{'role': 'assistant', " CALLED "{}}}]}]}"},
    {OLLAMA_CHAT, "{'messages': [{'role': 'developer', 'content': 'D'}, {'role': 'assistant', 'tool_calls': [{'id': "
     "'c1', 'function': {'name': 'f'}}]}], 'stream': false}",
     "{'messages': [{'role': 'developer', 'content': 'D'}, {'role': 'assistant', " CALLED "{}}}]}], 'stream': false}"},
    {RESPONSE, "{'input': 'Hi', 'include': ['message.output_text.logprobs'], 'top_logprobs': 2}",
     "{'messages': [" USER("'Hi'") "], 'logprobs': true, 'top_logprobs': 2}"},
    {RESPONSE, "{'input': 'Hi', 'include': ['message.output_text.logprobs']}",
     "{'messages': [" USER("'Hi'") "], 'logprobs': true}"},
    {RESPONSE, "{'input': 'Hi', 'top_logprobs': 0}", "{'messages': [" USER("'Hi'") "]}"},
    {MESSAGE, "{'model': 'm', 'max_tokens': 9, 'messages': [" USER("'Hi'") "], 'top_k': 4, 'stop_sequences': ['x'], "
           "'metadata': {'user_id': 'u'}, 'system': 'S', 'thinking': {'type': 'enabled', 'budget_tokens': 1024}}",
     "{'model': 'm', 'max_tokens': 9, 'messages': [{'role': 'system', 'content': 'S'}, " USER("'Hi'") "], 'top_k': 4, "
     "'stop': ['x'], 'chat_template_kwargs': {'enable_thinking': true}, 'reasoning_budget_if_built': 1024}"},
    {MESSAGE, "{'max_tokens': 9, 'system': [{'type': 'text', 'text': 'S', 'cache_control': {'type': 'ephemeral'}}], "
           "'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': 'a'}, {'type': 'image', 'source': "
           "{'type': 'base64', 'media_type': 'image/png', 'data': 'AA=='}}]}, {'role': 'assistant', 'content': "
           "[{'type': 'thinking', 'thinking': 'hm', 'signature': ''}, {'type': 'text', 'text': 'so'}, {'type': "
           "'tool_use', 'id': 'c1', 'name': 'f', 'input': {'a': 1}}]}, {'role': 'user', 'content': [{'type': "
           "'tool_result', 'tool_use_id': 'c1', 'content': '7'}, {'type': 'tool_result', 'tool_use_id': 'c2', "
           "'is_error': true, 'content': [{'type': 'text', 'text': '8'}]}, {'type': 'text', 'text': 'and?'}]}], "
           "'thinking': {'type': 'disabled'}}",
     "{'max_tokens': 9, 'messages': [{'role': 'system', 'content': 'S'}, " USER("[{'type': 'text', 'text': 'a'}, "
     "{'type': 'image_url', 'image_url': '" PNG "'}]") ", {'role': 'assistant', 'reasoning_content': 'hm', 'content': "
     "'so', " CALLED "{'a': 1}}}]}, {'role': 'tool', 'tool_call_id': 'c1', 'content': '7'}, {'role': 'tool', "
     "'tool_call_id': 'c2', 'content': '8'}, " USER("'and?'") "], 'chat_template_kwargs': {'enable_thinking': false}}"},
    {MESSAGE, "{'max_tokens': 9, 'messages': [{'role': 'assistant', 'content': [{'type': 'thinking', 'thinking': 'A'}, "
              "{'type': 'text', 'text': 'x'}, {'type': 'thinking', 'thinking': 'B'}]}]}",
     "{'max_tokens': 9, 'messages': [{'role': 'assistant', 'reasoning_content': 'AB', 'content': 'x'}]}"},
    {MESSAGE, "{'max_tokens': 9, 'messages': [" USER("'Hi'") ", {'role': 'assistant', 'content': 'Well'}], 'tools': "
           "[{'name': 'f', 'description': 'd', 'input_schema': {'type': 'object'}}], 'tool_choice': {'type': 'any', "
           "'disable_parallel_tool_use': true}, 'output_config': {'format': {'type': 'json_schema', 'schema': {}}}}",
     "{'max_tokens': 9, 'messages': [" USER("'Hi'") ", {'role': 'assistant', 'content': 'Well'}], 'tools': [{'type': "
     "'function', 'function': {'name': 'f', 'description': 'd', 'parameters': {'type': 'object'}}}], 'tool_choice': "
     "'required', 'parallel_tool_calls': false, 'response_format': {'type': 'json_schema', 'schema': {}}}"},
    {MESSAGE, "{'max_tokens': 9, 'messages': [" USER("'Hi'") "], 'tool_choice': {'type': 'tool', 'name': 'f'}}",
     "{'max_tokens': 9, 'messages': [" USER("'Hi'") "], 'tool_choice': {'type': 'function', 'name': 'f'}}"},
#define FUNCTION(name, rest) "{'type': 'function', 'function': {'name': '" name "'" rest "}}"
#define INPUT ", 'parameters': {'type': 'object', 'properties': {'input': {'type': 'string'}}, 'required': ['input']}"
    /* Tools that other services run are ignored. A custom tool becomes a function whose parameter is a text. Tools of a
     * namespace keep their names. */
    {RESPONSE, "{'input': 'Hi', 'tools': [{'type': 'web_search', 'external_web_access': false}, {'type': 'function', "
               "'name': 'f'}, {'type': 'local_shell'}, {'type': 'tool_search'}, {'type': 'tool_search', 'execution': "
               "'client', 'description': 't', 'parameters': {}}, {'type': 'custom', 'name': 'apply_patch', "
               "'description': 'Edits.', 'format': {'type': 'grammar', 'syntax': 'lark', 'definition': 'start: "
               "\\'a\\''}}, {'type': 'namespace', 'name': 'mcp__files__', 'tools': [{'type': 'function', 'name': "
               "'read', 'parameters': {'type': 'object'}}, {'type': 'custom', 'name': 'edit'}, {'type': 'mcp'}]}, "
               "{'type': 'namespace', 'name': 'more', 'tools': [{'type': 'function', 'name': 'f'}]}, {'type': "
               "'function', 'name': 'f', 'description': 'again'}], 'tool_choice': {'type': 'custom', "
               "'name': 'apply_patch'}}",
     "{'messages': [" USER("'Hi'") "], 'tools': [" FUNCTION("f", "") ", "
     FUNCTION("tool_search", ", 'description': 't', 'parameters': {}") ", " FUNCTION("apply_patch", ", 'description': "
     "'Edits.\\n\\nThe input has to match this grammar, written as in lark:\\nstart: \\'a\\''" INPUT) ", "
     FUNCTION("mcp__files__read", ", 'parameters': {'type': 'object'}") ", " FUNCTION("mcp__files__edit", INPUT) ", "
     FUNCTION("more__f", "") "], 'tool_choice': {'type': 'function', 'name': 'apply_patch'}}"},
    /* The input has items as Codex sends them. The model must get the calls and results of all kinds of tools. All
     * other items are ignored. */
    {RESPONSE, "{'input': [{'type': 'additional_tools', 'role': 'developer', 'tools': [{'type': 'namespace', 'name': "
               "'functions', 'tools': [{'type': 'custom', 'name': 'exec'}]}]}, {'role': 'user', 'content': 'Hi'}, "
               "{'type': 'ghost_snapshot', 'ghost_commit': {}}, {'type': 'reasoning', 'summary': [], "
               "'encrypted_content': 'gA'}, {'type': 'custom_tool_call', 'call_id': 'c1', 'name': 'exec', 'namespace': "
               "'functions', 'input': 'a\\nb'}, {'type': 'custom_tool_call_output', 'call_id': 'c1', 'output': "
               "[{'type': 'input_text', 'text': '7'}, {'type': 'encrypted_content', 'encrypted_content': 'x'}]}, "
               "{'type': 'function_call', 'call_id': 'c2', 'name': 'f', 'namespace': 'mcp__g__', 'arguments': '{}'}, "
               "{'type': 'function_call_output', 'call_id': 'c2', 'output': {'content': '8', 'success': true}}, "
               "{'type': 'web_search_call', 'id': 'ws', 'action': {'type': 'search'}}, {'type': 'compaction', "
               "'encrypted_content': 'gB'}, {'type': 'item_reference', 'id': 'x'}]}",
     "{'messages': [" USER("'Hi'") ", {'role': 'assistant', 'tool_calls': [{'id': 'c1', 'type': 'function', "
     "'function': {'name': 'functions__exec', 'arguments': {'input': 'a\\nb'}}}]}, {'role': 'tool', 'tool_call_id': "
     "'c1', 'content': '7'}, {'role': 'assistant', 'tool_calls': [{'id': 'c2', 'type': 'function', 'function': "
     "{'name': 'mcp__g__f', 'arguments': '{}'}}]}, {'role': 'tool', 'tool_call_id': 'c2', 'content': "
     "'{\\'content\\':\\'8\\',\\'success\\':true}'}], 'tools': [" FUNCTION("functions__exec", INPUT) "]}"},
    /* These are OpenAI's own tools, which the client runs. One result belongs to no call and must be ignored. */
    {RESPONSE, "{'input': [{'role': 'user', 'content': 'Hi'}, {'type': 'local_shell_call', 'call_id': 'c3', 'status': "
               "'completed', 'action': {'type': 'exec', 'command': ['ls']}}, {'type': 'local_shell_call_output', 'id': "
               "'c3', 'output': 'a'}, {'type': 'shell_call_output', 'call_id': 'c9', 'output': [{'stdout': 'b'}]}, "
               "{'type': 'tool_search_call', 'call_id': 'c2', 'arguments': {'query': 'x'}}, {'type': "
               "'tool_search_output', 'call_id': 'c2', 'tools': [{'type': 'function', 'name': 'g'}]}, {'type': "
               "'shell_call', 'call_id': 'c4', 'action': {'commands': ['w']}}, {'type': 'shell_call_output', "
               "'call_id': 'c4', 'output': [{'stdout': 'b'}]}]}",
     "{'messages': [" USER("'Hi'") ", {'role': 'assistant', 'tool_calls': [{'id': 'c3', 'type': 'function', "
     "'function': {'name': 'local_shell', 'arguments': {'type': 'exec', 'command': ['ls']}}}]}, {'role': 'tool', "
     "'tool_call_id': 'c3', 'content': 'a'}, {'role': 'assistant', 'tool_calls': [{'id': 'c2', 'type': 'function', "
     "'function': {'name': 'tool_search', 'arguments': {'query': 'x'}}}]}, {'role': 'tool', 'tool_call_id': 'c2', "
     "'content': '[\\'g\\']'}, {'role': 'assistant', 'tool_calls': [{'id': 'c4', 'type': 'function', 'function': "
     "{'name': 'shell', 'arguments': {'commands': ['w']}}}]}, {'role': 'tool', 'tool_call_id': 'c4', 'content': "
     "'[{\\'stdout\\':\\'b\\'}]'}], 'tools': [" FUNCTION("g", "") "]}"},
    /* Clients send reasoning back in the form in which an answer contained it, as plain text or encoded. The chat must
     * have this reasoning. It must not have the summary that the client sends with it. */
    {RESPONSE, "{'input': [{'role': 'user', 'content': 'Hi'}, {'type': 'reasoning', 'summary': [{'text': 's'}], "
               "'encrypted_content': 'forerun:hm'}, {'role': 'assistant', 'content': 'so'}, {'role': 'user', "
               "'content': 'a'}, {'type': 'reasoning', 'summary': [{'text': 's'}], 'encrypted_content': 'gA'}, "
               "{'role': 'assistant', 'content': 'b'}]}",
     "{'messages': [" USER("'Hi'") ", {'role': 'assistant', 'reasoning_content': 'hm', 'content': 'so'}, " USER("'a'")
     ", {'role': 'assistant', 'reasoning_content': 's', 'content': 'b'}]}"},
    /* A message of the assistant may be empty. */
    {RESPONSE, "{'input': [" USER("'Hi'") ", {'role': 'assistant', 'content': null}, " USER("'b'") "]}",
     "{'messages': [" USER("'Hi'") ", " USER("'b'") "]}"},
    {MESSAGE, "{'messages': [" USER("'Hi'") ", {'role': 'assistant', 'content': null}, " USER("'b'") "]}",
     "{'messages': [" USER("'Hi'") ", " USER("'b'") "]}"},
    /* All these members are ignored. One of them is unknown. */
    {RESPONSE, "{'input': 'Hi', 'truncation': 'auto', 'context_management': [{'type': 'compaction'}], 'background': "
               "false, 'client_metadata': {'a': 'b'}, 'max_tool_calls': 3, 'prompt_cache_key': 'k', 'include': "
               "['reasoning.encrypted_content'], 'nobody_knows': {'it': 1}}", "{'messages': [" USER("'Hi'") "]}"},
    {MESSAGE, "{'messages': [" USER("'Hi'") "], 'context_management': {'edits': [{'type': 'clear_thinking_20251015', "
              "'keep': 'all'}]}, 'betas': ['x'], 'container': 'c', 'mcp_servers': [{'url': 'x'}], 'service_tier': "
              "'auto', 'nobody_knows': 5}", "{'messages': [" USER("'Hi'") "]}"},
    {MESSAGE, "{'messages': [" USER("'Hi'") "], 'tools': [{'type': 'web_search_20250305', 'name': 'web_search', "
              "'max_uses': 8}, {'type': 'bash_20250124', 'name': 'bash'}, {'type': 'custom', 'name': 'f', "
              "'input_schema': {}, 'cache_control': {'type': 'ephemeral'}}]}",
     "{'messages': [" USER("'Hi'") "], 'tools': [" FUNCTION("f", ", 'parameters': {}") "]}"},
    /* Calls of tools that other services run are ignored. The model must get the texts next to them, and the summary of
     * an earlier conversation. */
    {MESSAGE, "{'messages': [{'role': 'assistant', 'content': [{'type': 'compaction', 'content': 'Before: a.'}, "
              "{'type': 'server_tool_use', 'id': 's', 'name': 'web_search', 'input': {}}, {'type': "
              "'web_search_tool_result', 'tool_use_id': 's', 'content': []}, {'type': 'tool_use', 'id': 'c1', 'name': "
              "'f'}]}, {'role': 'user', 'content': [{'type': 'tool_result', 'tool_use_id': 'c1', 'content': [{'type': "
              "'tool_reference', 'tool_name': 'g'}]}, {'type': 'document', 'title': 'T', 'source': {'type': 'text', "
              "'media_type': 'text/plain', 'data': 'D'}}]}]}",
     "{'messages': [{'role': 'assistant', 'content': 'Before: a.', " CALLED "{}}}]}, {'role': 'tool', 'tool_call_id': "
     "'c1', 'content': 'g'}, " USER("[{'type': 'text', 'text': 'T\\n'}, {'type': 'text', 'text': 'D'}]") "]}"},
    /* Files and results of tools are passed on unchanged to the reader of the chat format, which decides about them. */
    {MESSAGE, "{'messages': [{'role': 'user', 'content': [{'type': 'tool_result', 'tool_use_id': 'c1', 'content': "
              "[{'type': 'image', 'source': {'type': 'file', 'file_id': 'f'}}]}, {'type': 'document', 'title': 'T', "
              "'source': {'type': 'base64', 'media_type': 'application/pdf', 'data': 'AA=='}}]}]}",
     "{'messages': [{'role': 'tool', 'tool_call_id': 'c1', 'content': [{'type': 'image'}]}, " USER("[{'type': 'file', "
     "'filename': 'T', 'file_data': 'data:application/pdf;base64,AA=='}]") "]}"},
    {RESPONSE, "{'input': [{'role': 'user', 'content': [{'type': 'input_file', 'file_id': 'f'}]}, {'type': "
               "'function_call_output', 'call_id': 'c1', 'output': [{'type': 'input_image', 'file_id': 'f'}, {'type': "
               "'input_image', 'image_url': '" PNG "'}]}]}",
     "{'messages': [" USER("[{'type': 'input_file', 'file_id': 'f'}]") ", {'role': 'tool', 'tool_call_id': 'c1', "
     "'content': [{'type': 'input_image', 'file_id': 'f'}, {'type': 'image_url', 'image_url': '" PNG "'}]}]}"},
    {OLLAMA_CHAT, "{'messages': [{'role': 'tool', 'tool_name': 'f', 'content': '7', 'images': ['iVBORw==']}]}",
     "{'stream': true, 'messages': [{'role': 'tool', 'tool_call_id': 'f', 'name': 'f', 'content': [{'type': 'text', "
     "'text': '7'}, {'type': 'image_url', 'image_url': 'data:image/png;base64,iVBORw=='}]}]}"},
    {OLLAMA_CHAT, "{'model': 'm', 'messages': [{'role': 'system', 'content': 'S'}, {'role': 'user', 'content': 'a', "
                  "'images': ['iVBORw=='], 'thinking': 'x'}, {'role': 'assistant', 'content': '', 'thinking': 'hm', "
                  "'tool_calls': [{'function': {'name': 'f', 'arguments': {'a': 1}}}]}, {'role': 'tool', 'tool_name': "
                  "'f', 'content': '7'}], 'think': false, 'keep_alive': '5m', 'format': {'type': 'object'}, 'options': "
                  "{'num_predict': 9, 'temperature': 0.5, 'stop': ['x'], 'num_ctx': 4096, 'seed': 3}}",
     "{'model': 'm', 'stream': true, 'max_tokens': 9, 'temperature': 0.5, 'stop': ['x'], 'seed': 3, 'json_schema': "
     "{'type': 'object'}, 'chat_template_kwargs': {'enable_thinking': false}, 'messages': [{'role': 'system', "
     "'content': 'S'}, " USER("[{'type': 'text', 'text': 'a'}, {'type': 'image_url', 'image_url': "
     "'data:image/png;base64,iVBORw=='}]") ", {'role': 'assistant', 'reasoning_content': 'hm', 'content': '', "
     "'tool_calls': [{'id': 'c00020000', 'type': 'function', 'function': {'name': 'f', 'arguments': {'a': 1}}}]}, "
     "{'role': 'tool', 'tool_call_id': 'c00020000', 'name': 'f', 'content': '7'}]}"},
    {OLLAMA_GENERATE, "{'prompt': 'Hi', 'system': 'S', 'stream': false, 'format': 'json', 'context': [], 'suffix': '', "
                      "'options': {'num_predict': -2}, 'think': 'low'}",
     "{'messages': [{'role': 'system', 'content': 'S'}, " USER("'Hi'") "], 'stream': false, 'max_tokens': -1, "
     "'response_format': {'type': 'json_object'}, 'reasoning_effort': 'low'}"},
    {OLLAMA_CHAT, "{'messages': [{'role': 'assistant', 'tool_calls': [{'function': {'name': 'f', 'arguments': {}}}, "
                  "{'id': 'abcdefghi', 'function': {'name': 'g', 'arguments': {}}}]}, {'role': 'tool', 'content': "
                  "'7'}, {'role': 'tool', 'content': '8'}]}",
     "{'stream': true, 'messages': [{'role': 'assistant', 'tool_calls': [{'id': 'c00000000', 'type': 'function', "
     "'function': {'name': 'f', 'arguments': {}}}, {'id': 'abcdefghi', 'type': 'function', 'function': {'name': 'g', "
     "'arguments': {}}}]}, {'role': 'tool', 'tool_call_id': 'c00000000', 'content': '7'}, {'role': 'tool', "
     "'tool_call_id': 'abcdefghi', 'content': '8'}]}"},
    /* A result that names its function belongs to the call of this function. The results may be in another order than
     * the calls. */
    {OLLAMA_CHAT, "{'messages': [{'role': 'assistant', 'tool_calls': [{'id': 'a', 'function': {'name': 'f'}}, {'id': "
                  "'b', 'function': {'name': 'g'}}, {'id': 'c', 'function': {'name': 'f'}}]}, {'role': 'tool', "
                  "'tool_name': 'g', 'content': '7'}, {'role': 'tool', 'tool_name': 'f', 'content': '8'}, {'role': "
                  "'tool', 'content': '9', 'tool_name': 'other'}]}",
     "{'stream': true, 'messages': [{'role': 'assistant', 'tool_calls': [{'id': 'a', 'type': 'function', 'function': "
     "{'name': 'f', 'arguments': {}}}, {'id': 'b', 'type': 'function', 'function': {'name': 'g', 'arguments': {}}}, "
     "{'id': 'c', 'type': 'function', 'function': {'name': 'f', 'arguments': {}}}]}, {'role': 'tool', 'tool_call_id': "
     "'b', 'name': 'g', 'content': '7'}, {'role': 'tool', 'tool_call_id': 'a', 'name': 'f', 'content': '8'}, {'role': "
     "'tool', 'tool_call_id': 'c', 'name': 'other', 'content': '9'}]}"},
    {OLLAMA_GENERATE, "{'prompt': 'Hi', 'raw': true}", "{'prompt': 'Hi', 'stream': true}"},
    {OLLAMA_GENERATE, "{'prompt': 'Hi', 'raw': true, 'logprobs': true, 'top_logprobs': 2}",
     "{'prompt': 'Hi', 'stream': true, 'logprobs': 2}"},
    {OLLAMA_GENERATE, "{'prompt': 'int f(', 'suffix': ') {}', 'stream': false}",
     "{'input_prefix': 'int f(', 'input_suffix': ') {}', 'stream': false}"},
    {OLLAMA_CHAT, "{'messages': [" USER("'Hi'") ", {'role': 'assistant', 'tool_calls': [{'id': 'c1', 'function': "
                  "{'name': 'f', 'arguments': '{}'}}]}], 'logprobs': true, 'top_logprobs': 3}",
     "{'stream': true, 'messages': [" USER("'Hi'") ", {'role': 'assistant', " CALLED "'{}'}}]}], 'logprobs': true, "
     "'top_logprobs': 3}"},
};
/* clang-format on */

START_TEST(requests_are_those_of_a_chat) {
    char error[FR_DIALECT_ERROR];
    json_t *body = value_of(read_cases[_i].body), *expected = value_of(read_cases[_i].chat);
    json_t *chat = readers[read_cases[_i].dialect](body, error);
    ck_assert_msg(chat != NULL, "%s: %s", read_cases[_i].body, error);
    if (read_cases[_i].dialect == RESPONSE) json_object_set_new(expected, "continue_final_message", json_false());
    fr_same_said(expected, chat, read_cases[_i].body);
    json_decref(chat);
    json_decref(expected);
    json_decref(body);
}
END_TEST

static const struct {
    int dialect;
    const char *body, *says;
} refused_cases[] = {
    {RESPONSE, "{}", "input is missing"},
    {RESPONSE, "{'input': 5}", "input must be"},
    {RESPONSE, "{'input': [5]}", "input[0]: a message's role"},
    {RESPONSE, "{'input': [{'role': 'tool', 'content': 'a'}]}", "input[0]: a message's role"},
    {RESPONSE, "{'input': [{'role': 'user'}]}", "input[0] has no content"},
    {RESPONSE, "{'input': [{'role': 'user', 'content': [{'type': 'input_audio'}]}]}", "input_audio"},
    {RESPONSE, "{'input': [{'role': 'user', 'content': [{'type': 'input_text', 'text': 5}]}]}", "is not a text"},
    {RESPONSE, "{'input': [{'type': 'function_call', 'call_id': 'c', 'name': 'f', 'arguments': 5}]}",
     "input[0]: a function_call"},
    {RESPONSE, "{'input': [{'type': 'function_call_output', 'output': 'f'}]}", "call_id"},
    {RESPONSE, "{'input': 'a', 'instructions': ['b']}", "instructions"},
    {RESPONSE, "{'input': 'a', 'previous_response_id': 'r'}", "previous_response_id"},
    {RESPONSE, "{'input': 'a', 'conversation': 'r'}", "conversation"},
    {RESPONSE, "{'input': 'a', 'prompt': {'id': 'p'}}", "prompt"},
    {RESPONSE, "{'input': 'a', 'background': true}", "background"},
    {RESPONSE, "{'input': 'a', 'top_logprobs': 21}", "top_logprobs must be a whole number from 0 to 20"},
    {RESPONSE, "{'input': 'a', 'top_logprobs': '2'}", "top_logprobs must be a whole number from 0 to 20"},
    {RESPONSE, "{'input': 'a', 'include': 'message.output_text.logprobs'}", "include must be an array"},
    {RESPONSE, "{'input': 'a', 'max_output_tokens': 0}", "max_output_tokens"},
    {RESPONSE, "{'input': 'a', 'max_output_tokens': 1.5}", "max_output_tokens"},
    {RESPONSE, "{'input': 'a', 'tools': 5}", "tools must"},
    {RESPONSE, "{'input': 'a', 'tools': [5]}", "tools[0] must be an object"},
    {RESPONSE, "{'input': 'a', 'tools': [{'type': 'custom'}]}", "tools[0] has no name"},
    {RESPONSE, "{'input': 'a', 'tools': [{'type': 'namespace', 'name': 'n'}]}", "tools[0], a namespace"},
    {RESPONSE, "{'input': 'a', 'tools': [{'type': 'namespace', 'name': 'n', 'tools': [{'type': 'function'}]}]}",
     "tools[0] has no name"},
    {RESPONSE, "{'input': [{'type': 'additional_tools', 'tools': [{'type': 'custom', 'name': 5}]}]}",
     "input[0].tools[0] has no name"},
    {RESPONSE, "{'input': [{'type': 'custom_tool_call', 'call_id': 'c', 'name': 'f', 'input': {}}]}",
     "input[0]: a custom_tool_call"},
    {RESPONSE, "{'input': [{'type': 'custom_tool_call_output', 'output': 'f'}]}",
     "input[0]: a custom_tool_call_output has a call_id"},
    {RESPONSE, "{'input': 'a', 'tools': [{'type': 'function'}]}", "tools[0] has no name"},
    {RESPONSE, "{'input': 'a', 'text': 'json'}", "text must"},
    {RESPONSE, "{'input': 'a', 'reasoning': 'low'}", "reasoning must"},
    {MESSAGE, "{'max_tokens': 5}", "messages must"},
    {MESSAGE, "{'messages': []}", "messages must"},
    {MESSAGE, "{'messages': [5]}", "messages[0]: a role"},
    {MESSAGE, "{'messages': [{'role': 'tool', 'content': 'a'}]}", "messages[0]: a role"},
    {MESSAGE, "{'messages': [{'role': 'user'}]}", "messages[0] has no content"},
    {MESSAGE, "{'messages': [{'role': 'user', 'content': [{'type': 'document', 'data': 'AA=='}]}]}",
     "messages[0] has a document without a source"},
    {MESSAGE, "{'messages': [{'role': 'user', 'content': [{'text': 'a'}]}]}", "messages[0] has a block without a type"},
    {MESSAGE, "{'messages': [{'role': 'user', 'content': [{'type': 'text'}]}]}", "messages[0] has a text block"},
    {MESSAGE, "{'messages': [{'role': 'user', 'content': [{'type': 'image', 'source': {'type': 'file'}}]}]}", "source"},
    {MESSAGE,
     "{'messages': [{'role': 'user', 'content': [{'type': 'image', 'source': {'type': 'base64', 'media_type': "
     "99999999999999999999, 'data': 'AAAA'}}]}]}",
     "source"},
    {MESSAGE,
     "{'messages': [{'role': 'user', 'content': [{'type': 'image', 'source': {'type': 'base64', 'media_type': "
     "'image/png', 'data': 99999999999999999999}}]}]}",
     "source"},
    {MESSAGE, "{'messages': [{'role': 'user', 'content': [{'type': 'tool_result'}]}]}", "tool_use_id"},
    {MESSAGE, "{'messages': [{'role': 'user', 'content': [{'type': 'tool_use'}]}]}", "tool_use"},
    {MESSAGE,
     "{'messages': [{'role': 'assistant', 'content': [{'type': 'tool_use', 'id': 'a', 'name': 'f', 'input': "
     "'{}'}]}]}",
     "an object"},
    {MESSAGE, "{'messages': [" USER("'a'") "], 'system': 5}", "system must"},
    {MESSAGE, "{'messages': [" USER("'a'") "], 'system': [5]}", "system[0]"},
    {MESSAGE, "{'messages': [" USER("'a'") "], 'max_tokens': -1}", "max_tokens"},
    {MESSAGE, "{'messages': [" USER("'a'") "], 'stop_sequences': 'a'}", "stop_sequences"},
    {MESSAGE, "{'messages': [" USER("'a'") "], 'tool_choice': 'any'}", "tool_choice"},
    {MESSAGE, "{'messages': [" USER("'a'") "], 'tool_choice': {'type': 'tool'}}", "tool_choice"},
    {MESSAGE, "{'messages': [" USER("'a'") "], 'thinking': {'type': 'deep'}}", "thinking"},
    {MESSAGE, "{'messages': [" USER("'a'") "], 'thinking': {'type': 'enabled', 'budget_tokens': '9'}}",
     "thinking.budget_tokens"},
    {OLLAMA_CHAT, "{}", "messages must"},
    {OLLAMA_CHAT, "{'messages': [5]}", "messages[0]: a role"},
    {OLLAMA_CHAT, "{'messages': [{'role': 'user', 'content': []}]}", "messages[0]: content"},
    {OLLAMA_CHAT, "{'messages': [{'role': 'user', 'images': [7]}]}", "images[0]"},
    {OLLAMA_CHAT, "{'messages': [{'role': 'assistant', 'tool_calls': [{'function': {'name': 'f', 'arguments': 5}}]}]}",
     "messages[0]"},
    {OLLAMA_CHAT, "{'messages': [" USER("'a'") "], 'options': 5}", "options must"},
    {OLLAMA_CHAT, "{'messages': [" USER("'a'") "], 'options': {'num_predict': 1.5}}", "num_predict"},
    {OLLAMA_CHAT, "{'messages': [" USER("'a'") "], 'format': 5}", "format must"},
    {OLLAMA_CHAT, "{'messages': [" USER("'a'") "], 'logprobs': 2}", "logprobs must be true or false"},
    {OLLAMA_CHAT, "{'messages': [" USER("'a'") "], 'logprobs': true, 'top_logprobs': 21}", "top_logprobs must be"},
    {OLLAMA_GENERATE, "{}", "prompt must"},
    {OLLAMA_GENERATE, "{'prompt': 'a', 'template': 'b'}", "template"},
    {OLLAMA_GENERATE, "{'prompt': 'a', 'context': [1]}", "context"},
};

START_TEST(what_is_no_request_is_named) {
    char error[FR_DIALECT_ERROR];
    json_t *body = value_of(refused_cases[_i].body);
    json_t *chat = readers[refused_cases[_i].dialect](body, error);
    ck_assert_msg(!chat, "%s was taken", refused_cases[_i].body);
    ck_assert_msg(strstr(error, refused_cases[_i].says), "%s: \"%s\"", refused_cases[_i].body, error);
    json_decref(body);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- infill */

/* Opens the demo model's tokenizer with these additional control tokens. */
static fr_tokenizer *open_infilling(const char *const *tokens, size_t count) {
    json_t *value = fr_load_json("tools/demo/target/tokenizer.json"), *added = json_object_get(value, "added_tokens");
    for (size_t i = 0; i < count; i++)
        json_array_append_new(added,
                              fr_body("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", 4096 + (int)i, "content", tokens[i],
                                      "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1));
    fr_tokenizer *tokenizer = fr_open_value(value);
    json_decref(value);
    return tokenizer;
}

static const char *const qwen[] = {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>",
                                   "<|file_sep|>"};
static const char *const santa[] = {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"};

/* The prompt for filling in code is made as in llama.cpp's server (format_prompt_infill), which follows the report of
 * Qwen2.5-Coder. For a single file it is made as in the report itself. The expected prompt is a list of tokens and
 * texts. Each text is tokenized separately. */
static const struct {
    const char *const *tokens;
    size_t count;
    const char *body, *pieces[24];
} infill_cases[] = {
    {qwen,
     5,
     "{'input_prefix': 'a = ', 'input_suffix': '\\n', 'n_predict': 3}",
     {"<bos>", "<|fim_prefix|>", "a = ", "<|fim_suffix|>", "\n", "<|fim_middle|>"}},
    {qwen,
     5,
     "{'input_prefix': 'a = ', 'input_suffix': '', 'prompt': 'b<|fim_middle|>', 'input_extra': [{'filename': "
     "'x.py', 'text': 'c <|file_sep|>\\n'}, {'text': 'd'}], 'n_indent': 4, 'samplers': ['top_k', 'infill']}",
     {"<bos>", "<|repo_name|>", "myproject\n", "<|file_sep|>", "x.py\n", "c <|file_sep|>\n", "<|file_sep|>", "tmp\n",
      "d", "<|file_sep|>", "filename\n", "<|fim_prefix|>", "a = ", "b<|fim_middle|>", "<|fim_suffix|>",
      "<|fim_middle|>"}},
    {santa,
     3,
     "{'input_suffix': 'e', 'input_extra': [{'text': 'd'}]}",
     {"<bos>", "\n\n--- snippet ---\n\n", "d", "\n\n--- snippet ---\n\n", "<fim-prefix>", "<fim-suffix>", "e",
      "<fim-middle>"}},
};

/* Returns true if the piece is the name of a token, which has the form "<...>". */
static bool is_token(const char *piece) {
    return *piece == '<' && piece[strlen(piece) - 1] == '>';
}

START_TEST(code_stands_between_tokens) {
    char error[FR_INFILL_ERROR] = "";
    fr_tokenizer *tokenizer = open_infilling(infill_cases[_i].tokens, infill_cases[_i].count);
    json_t *body = value_of(infill_cases[_i].body), *expected = json_array();
    ck_assert_msg(fr_infill_read(tokenizer, body, error), "%s", error);
    for (size_t i = 0; infill_cases[_i].pieces[i]; i++) {
        const char *piece = infill_cases[_i].pieces[i];
        int32_t *ids;
        size_t count;
        require(fr_tokenize(tokenizer, piece, strlen(piece), false, is_token(piece), &ids, &count));
        ck_assert(!is_token(piece) || count == 1);
        for (size_t id = 0; id < count; id++) json_array_append_new(expected, json_integer(ids[id]));
        fr_free(ids);
    }
    fr_same_said(expected, json_object_get(body, "prompt"), infill_cases[_i].body);
    ck_assert_ptr_null(json_object_get(body, "input_extra"));
    ck_assert_ptr_null(json_object_get(body, "n_indent"));
    ck_assert_uint_le(json_array_size(json_object_get(body, "samplers")), 1);
    json_decref(expected);
    json_decref(body);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* A completion may have a suffix, whether its prompt is text or ids. */
START_TEST(a_suffix_stands_between_tokens) {
    static const char *const pieces[] = {"<bos>", "<|fim_prefix|>", "a = <|fim_suffix|>", "<|fim_suffix|>",
                                         "\nb",   "<|fim_middle|>"};
    char error[FR_INFILL_ERROR] = "";
    fr_tokenizer *tokenizer = open_infilling(qwen, 5), *none = open_infilling(qwen, 2);
    json_t *expected = json_array(), *text = json_string(pieces[2]), *ids = json_array(), *suffix = json_string("\nb");
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        int32_t *tokens;
        size_t count;
        require(fr_tokenize(tokenizer, pieces[i], strlen(pieces[i]), false, is_token(pieces[i]), &tokens, &count));
        for (size_t t = 0; t < count; t++) json_array_append_new(expected, json_integer(tokens[t]));
        for (size_t t = 0; t < count && i == 2; t++) json_array_append_new(ids, json_integer(tokens[t]));
        fr_free(tokens);
    }
    json_t *of_text = fr_infill_around(tokenizer, text, suffix, error);
    json_t *of_ids = fr_infill_around(tokenizer, ids, suffix, error);
    fr_same_said(expected, of_text, "a text");
    fr_same_said(expected, of_ids, "ids");
    ck_assert(!fr_infill_around(none, text, suffix, error) && strstr(error, "suffix: the model has no tokens"));
    ck_assert(!fr_infill_around(NULL, text, suffix, error) && strstr(error, "suffix: the model has no tokens"));
    ck_assert(!fr_infill_around(tokenizer, NULL, suffix, error) && strstr(error, "prompt must be"));
    json_decref(of_text);
    json_decref(of_ids);
    json_decref(expected);
    json_decref(text);
    json_decref(ids);
    json_decref(suffix);
    fr_tokenizer_close(tokenizer);
    fr_tokenizer_close(none);
}
END_TEST

START_TEST(what_can_not_be_filled_in_is_named) {
    static const char *const cases[][2] = {
        {"{'input_prefix': 5}", "input_prefix"},
        {"{'input_suffix': []}", "input_suffix"},
        {"{'prompt': [5]}", "prompt"},
        {"{'input_extra': 'a'}", "input_extra must"},
        {"{'input_extra': [5]}", "input_extra[0]"},
        {"{'input_extra': [{'text': 5}]}", "input_extra[0]"},
        {"{'input_extra': [{'text': 'a'}, {'text': 'a', 'filename': 5}]}", "input_extra[1]"}};
    char error[FR_INFILL_ERROR];
    fr_tokenizer *tokenizer = open_infilling(qwen, 5), *none = open_infilling(qwen, 2);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        json_t *body = value_of(cases[i][0]);
        ck_assert(!fr_infill_read(tokenizer, body, error));
        ck_assert_msg(strstr(error, cases[i][1]), "%s: %s", cases[i][0], error);
        json_decref(body);
    }
    json_t *body = value_of("{'input_prefix': 'a'}");
    ck_assert(!fr_infill_read(none, body, error) && strstr(error, "no tokens for code"));
    ck_assert(!fr_infill_read(NULL, body, error) && strstr(error, "no tokens for code"));
    json_decref(body);
    fr_tokenizer_close(tokenizer);
    fr_tokenizer_close(none);
}
END_TEST

/* ----------------------------------------------------------------------------------------------- requests over HTTP */

static fr_server server;

static json_t *asked(const char *path, const char *body, int status) {
    json_t *request = value_of(body), *answer;
    int got = fr_ask_json(server.port, path, request, &answer);
    char *said = json_dumps(answer, JSON_COMPACT | JSON_ENCODE_ANY);
    ck_assert_msg(got == status, "%s: %d, %s", body, got, said);
    free(said);
    json_decref(request);
    return answer;
}

static const char *text_at(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    ck_assert_msg(text != NULL, "no text \"%s\"", key);
    return text;
}

/* Renders the messages of a body with the demo model's template. */
static json_t *rendered(const char *path, const char *body) {
    static const fr_arguments args;
    static fr_loaded loaded;
    static const fr_job_setting setting = {.args = &args, .loaded = &loaded, .context = 256};
    char error[FR_DIALECT_ERROR];
    if (!loaded.model) {
        loaded.options = fr_options_new();
        require(fr_options_set(loaded.options, FR_OPT_THREADS, 1));
        require(fr_model_open("tools/demo/target", loaded.options, &loaded.model));
    }
    json_t *chat = value_of(body), *request = chat;
    if (strcmp(path, MESSAGES) == 0) chat = fr_messages_read(request, error);
    if (strcmp(path, RESPONSES) == 0) chat = fr_responses_read(request, error);
    if (strcmp(path, "/api/chat") == 0) chat = fr_ollama_read_chat(request, error);
    if (chat != request) json_decref(request);
    fr_generation_request *taken = fr_generation_request_read(NULL, &setting, FR_JOB_CHAT, chat);
    ck_assert_msg(taken->count == 1, "%s: %s", body, taken->error);
    const fr_marked_text *prompt = &taken->choices[0].job.prompt.rendered;
    json_t *text = json_stringn(prompt->text, prompt->length);
    fr_generation_request_free(taken);
    return text;
}

static json_int_t count_at(const json_t *object, const char *key) {
    return json_integer_value(json_object_get(object, key));
}

/* Sends the body. Returns the bytes of the stream. */
static char *streamed(const char *path, const char *body) {
    json_t *request = value_of(body);
    int status;
    fr_client *client = fr_ask_begin(server.port, path, request, &status);
    ck_assert_int_eq(status, 200);
    char *bytes = fr_client_body(client, NULL);
    ck_assert_ptr_nonnull(bytes);
    fr_client_close(client);
    json_decref(request);
    return bytes;
}

#define SETTING "'temperature': 0.9, 'seed': 11, 'speculative.n_max': 3"

/* In every dialect the text must be the same as in the equivalent chat. */
START_TEST(texts_are_those_of_a_chat) {
    server = fr_server_start("-m tools/demo/target -md tools/demo/assistant -t 2 -c 512");
    json_t *chat = asked("/v1/chat/completions",
                         "{'messages': [{'role': 'system', 'content': 'S'}, {'role': 'user', "
                         "'content': 'Hi'}], 'max_tokens': 24, " SETTING "}",
                         200);
    json_t *response =
        asked(RESPONSES, "{'instructions': 'S', 'input': 'Hi', 'max_output_tokens': 24, " SETTING "}", 200);
    json_t *message = asked(MESSAGES,
                            "{'system': 'S', 'messages': [{'role': 'user', 'content': 'Hi'}], 'max_tokens': "
                            "24, " SETTING "}",
                            200);
    const json_t *choice = json_array_get(json_object_get(chat, "choices"), 0), *usage = json_object_get(chat, "usage");
    const char *said = text_at(json_object_get(choice, "message"), "content");
    const json_t *item = json_array_get(json_object_get(response, "output"), 0);
    ck_assert_str_eq(said, text_at(json_array_get(json_object_get(item, "content"), 0), "text"));
    ck_assert_str_eq(said, text_at(json_array_get(json_object_get(message, "content"), 0), "text"));
    const json_t *took = json_object_get(response, "usage");
    ck_assert_int_eq(count_at(usage, "prompt_tokens"), count_at(took, "input_tokens"));
    ck_assert_int_eq(count_at(usage, "completion_tokens"), count_at(took, "output_tokens"));
    took = json_object_get(message, "usage");
    ck_assert_int_eq(count_at(usage, "prompt_tokens"),
                     count_at(took, "input_tokens") + count_at(took, "cache_read_input_tokens"));
    ck_assert_int_eq(strncmp(text_at(response, "id"), "resp_", 5), 0);
    ck_assert_int_eq(strncmp(text_at(message, "id"), "msg_", 4), 0);
    ck_assert_str_eq(text_at(response, "instructions"), "S");

    char *events = streamed(
        RESPONSES, "{'instructions': 'S', 'input': 'Hi', 'max_output_tokens': 24, 'stream': true, " SETTING "}");
    const char *last = strstr(events, "event: response.output_text.done\ndata: ");
    ck_assert_ptr_nonnull(last);
    json_t *done = json_loads(strchr(last, '{'), JSON_DISABLE_EOF_CHECK, NULL);
    ck_assert_str_eq(text_at(done, "text"), said);
    ck_assert_int_eq(strncmp(events, "event: response.created\ndata: {", 31), 0);
    json_decref(done);
    free(events);
    events = streamed(MESSAGES, "{'messages': [{'role': 'user', 'content': 'Hi'}], 'max_tokens': 4, 'stream': true}");
    ck_assert_int_eq(strncmp(events, "event: message_start\ndata: {", 28), 0);
    ck_assert_ptr_nonnull(strstr(events, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
    free(events);
    json_decref(chat);
    json_decref(response);
    json_decref(message);
    fr_server_stop(&server);
}
END_TEST

/* In the other dialects, the log-probabilities must be those of /v1/chat/completions for the same chat. In a stream,
 * each event must have the log-probabilities of its part of the text. */
START_TEST(logprobs_are_those_of_a_chat) {
    server = fr_server_start("-m tools/demo/target -md tools/demo/assistant -t 2 -c 512");
    json_t *chat = asked("/v1/chat/completions",
                         "{'messages': [{'role': 'user', 'content': 'Hi'}], 'max_tokens': 24, "
                         "'logprobs': true, 'top_logprobs': 2, " SETTING "}",
                         200);
    const json_t *expected =
        json_object_get(json_object_get(json_array_get(json_object_get(chat, "choices"), 0), "logprobs"), "content");
    json_t *response = asked(RESPONSES,
                             "{'input': 'Hi', 'max_output_tokens': 24, 'include': "
                             "['message.output_text.logprobs'], 'top_logprobs': 2, " SETTING "}",
                             200);
    const json_t *part =
        json_array_get(json_object_get(json_array_get(json_object_get(response, "output"), 0), "content"), 0);
    ck_assert_uint_eq(json_array_size(expected), 24);
    ck_assert(json_equal(json_object_get(part, "logprobs"), expected));
    ck_assert_int_eq(count_at(response, "top_logprobs"), 2);

    char *events = streamed(RESPONSES,
                            "{'input': 'Hi', 'max_output_tokens': 24, 'stream': true, 'top_logprobs': 2, " SETTING "}"),
         *at = events;
    json_t *joined = json_array();
    while ((at = strstr(at, "event: response.output_text.delta\ndata: "))) {
        at = strchr(at, '{');
        json_t *event = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
        json_array_extend(joined, json_object_get(event, "logprobs"));
        json_decref(event);
    }
    ck_assert(json_equal(joined, expected));
    free(events);
    json_decref(joined);
    json_decref(response);
    json_decref(chat);
    fr_server_stop(&server);
}
END_TEST

/* Joins the values of this member from all lines of a stream. The last line must mark the end, and no other line may
 * mark it. */
static char *lines_joined(const char *lines, const char *key) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (const char *end; *lines; lines = end + 1) {
        end = strchr(lines, '\n');
        ck_assert_ptr_nonnull(end);
        json_t *line = json_loadb(lines, (size_t)(end - lines), 0, NULL);
        fputs(text_at(line, key), out);
        ck_assert(json_is_true(json_object_get(line, "done")) == (end[1] == '\0'));
        json_decref(line);
    }
    fclose(out);
    return text;
}

/* Requests that ollama's /api/show refuses. */
static const struct {
    const char *body, *says;
    int http;
} not_shown[] = {{"[1]", "no JSON object", 400},
                 {"{}", "\"model\" must be the name", 400},
                 {"{'model': ''}", "\"model\" must be the name", 400},
                 {"{'model': 7, 'name': 'target'}", "\"model\" must be the name", 400},
                 {"{'model': 'targe'}", "no model \"targe\"", 404},
                 {"{'model': 'target:8b'}", "no model \"target:8b\"", 404}};

/* ollama's answer is lines of JSON, or one object if the request asks for one. /api/chat must give the text of a chat.
 * /api/generate with a plain prompt must give the text of a completion. */
START_TEST(ollama_says_the_same) {
    server = fr_server_start("-m tools/demo/target -md tools/demo/assistant -t 2 -c 512");
    static const char options[] = "'options': {'num_predict': 24, 'temperature': 0.9, 'seed': 11}";
    char body[512];
    json_t *chat =
        asked("/v1/chat/completions", "{'messages': [" USER("'Hi'") "], 'max_tokens': 24, " SETTING "}", 200);
    const json_t *choice = json_array_get(json_object_get(chat, "choices"), 0);
    const char *said = text_at(json_object_get(choice, "message"), "content");
    snprintf(body, sizeof body, "{'messages': [" USER("'Hi'") "], 'stream': false, %s}", options);
    json_t *answer = asked("/api/chat", body, 200);
    ck_assert_str_eq(text_at(json_object_get(answer, "message"), "content"), said);
    ck_assert_int_eq(count_at(answer, "prompt_eval_count"), count_at(json_object_get(chat, "usage"), "prompt_tokens"));
    ck_assert_int_eq(count_at(answer, "eval_count"), 24);
    ck_assert_str_eq(text_at(answer, "done_reason"), "length");
    json_decref(answer);
    snprintf(body, sizeof body, "{'prompt': 'Hi', 'stream': false, %s}", options);
    answer = asked("/api/generate", body, 200);
    ck_assert_str_eq(text_at(answer, "response"), said);
    json_decref(answer);
    snprintf(body, sizeof body, "{'prompt': 'Hi', %s}", options);
    char *lines = streamed("/api/generate", body), *joined = lines_joined(lines, "response");
    ck_assert_str_eq(joined, said);
    free(joined);
    free(lines);
    json_decref(chat);

    chat = asked("/v1/completions", "{'prompt': 'Hi', 'max_tokens': 24, " SETTING "}", 200);
    snprintf(body, sizeof body, "{'prompt': 'Hi', 'raw': true, %s}", options);
    lines = streamed("/api/generate", body);
    joined = lines_joined(lines, "response");
    ck_assert_str_eq(joined, text_at(json_array_get(json_object_get(chat, "choices"), 0), "text"));
    free(joined);
    free(lines);

    ck_assert_int_eq(fr_ask_json(server.port, "/api/tags", NULL, &answer), 200);
    const json_t *tagged = json_array_get(json_object_get(answer, "models"), 0);
    ck_assert_str_eq(text_at(tagged, "name"), "target");
    ck_assert_uint_eq(strspn(text_at(tagged, "digest"), "0123456789abcdef"), 64);
    ck_assert_int_gt(count_at(tagged, "size"), 100000);
    ck_assert_str_eq(text_at(json_object_get(tagged, "details"), "format"), "safetensors");
    json_t *loaded;
    ck_assert_int_eq(fr_ask_json(server.port, "/api/ps", NULL, &loaded), 200);
    const json_t *one = json_array_get(json_object_get(loaded, "models"), 0);
    ck_assert_str_eq(text_at(one, "digest"), text_at(tagged, "digest"));
    ck_assert_int_eq(count_at(one, "context_length"), 512);
    ck_assert_uint_eq(strlen(text_at(one, "expires_at")), 20);
    json_decref(loaded);
    json_decref(answer);
    answer = asked("/api/show", "{'model': 'target'}", 200);
    json_t *info = json_object_get(answer, "model_info");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(answer, "capabilities"), 0)), "completion");
    ck_assert_str_eq(text_at(info, "general.architecture"), "forerun");
    ck_assert_int_gt(json_integer_value(json_object_get(info, "forerun.context_length")), 0);
    json_decref(answer);
    json_decref(asked("/api/show", "{'name': 'target:latest', 'model': null}", 200));
    for (size_t i = 0; i < COUNT_OF(not_shown); i++) {
        answer = asked("/api/show", not_shown[i].body, not_shown[i].http);
        ck_assert_msg(strstr(text_at(answer, "error"), not_shown[i].says), "%s", text_at(answer, "error"));
        json_decref(answer);
    }
    ck_assert_int_eq(fr_ask_json(server.port, "/api/version", NULL, &answer), 200);
    int version[3] = {0}; /* editors require ollama's version 0.6.4 or later */
    ck_assert_int_eq(sscanf(text_at(answer, "version"), "%d.%d.%d", &version[0], &version[1], &version[2]), 3);
    ck_assert_int_ge(version[0] * 10000 + version[1] * 100 + version[2], 604);
    ck_assert_uint_gt(strlen(text_at(answer, "forerun")), 0);
    json_decref(answer);
    answer = asked("/api/generate", "{'prompt': 'a', 'suffix': 'b'}", 400);
    ck_assert_ptr_nonnull(strstr(text_at(answer, "error"), "no tokens for code"));
    json_decref(answer);
    /* the server has no other model, so the model stays loaded even if a request asks to unload it */
    for (int unload = 0; unload < 2; unload++) {
        answer = asked("/api/generate", unload ? "{'model': 'm', 'keep_alive': '0s'}" : "{'model': 'm'}", 200);
        ck_assert_str_eq(text_at(answer, "done_reason"), unload ? "unload" : "load");
        ck_assert_str_eq(text_at(answer, "response"), "");
        ck_assert(json_is_true(json_object_get(answer, "done")));
        json_decref(answer);
        answer = asked("/api/chat", unload ? "{'messages': [], 'keep_alive': 0}" : "{'messages': []}", 200);
        ck_assert_str_eq(text_at(answer, "done_reason"), unload ? "unload" : "load");
        ck_assert_str_eq(text_at(json_object_get(answer, "message"), "content"), "");
        json_decref(answer);
    }
    answer = asked("/api/generate", "{'prompt': 5}", 400);
    ck_assert_str_eq(text_at(answer, "error"), "prompt must be a text");
    json_decref(answer);
    json_decref(chat);
    fr_server_stop(&server);
}
END_TEST

/* The log-probabilities must be those of /v1/chat/completions for the same chat. ollama's format has them next to the
 * message. In a stream, the lines have them in order. */
START_TEST(ollama_tells_logprobs) {
    server = fr_server_start("-m tools/demo/target -t 1 -c 256");
    static const char rest[] = "'logprobs': true, 'top_logprobs': 2, 'options': {'num_predict': 12, 'temperature': 0}";
    char body[512];
    json_t *chat = asked("/v1/chat/completions",
                         "{'messages': [" USER("'Hi'") "], 'max_tokens': 12, 'logprobs': true, "
                                                       "'top_logprobs': 2, 'temperature': 0}",
                         200),
           *joined = json_array();
    const json_t *expected =
        json_object_get(json_object_get(json_array_get(json_object_get(chat, "choices"), 0), "logprobs"), "content");
    ck_assert_uint_eq(json_array_size(expected), 12);
    snprintf(body, sizeof body, "{'messages': [" USER("'Hi'") "], 'stream': false, %s}", rest);
    json_t *answer = asked("/api/chat", body, 200);
    fr_same_said(expected, json_object_get(answer, "logprobs"), body);
    ck_assert_ptr_null(json_object_get(json_object_get(answer, "message"), "logprobs"));
    json_decref(answer);
    snprintf(body, sizeof body, "{'prompt': 'Hi', %s}", rest);
    char *lines = streamed("/api/generate", body);
    for (const char *line = lines, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        json_t *one = json_loadb(line, (size_t)(end - line), 0, NULL);
        json_array_extend(joined, json_object_get(one, "logprobs"));
        json_decref(one);
    }
    fr_same_said(expected, joined, body);
    free(lines);
    json_decref(joined);
    json_decref(chat);
    fr_server_stop(&server);
}
END_TEST

/* Grammars are compiled by a separate thread. So in every dialect the server must recognize whether a request has a
 * grammar. */
START_TEST(grammars_are_slow) {
    static const char *const bodies[] = {"{\"grammar\": \"root ::= [a]\"}",
                                         "{\"json_schema\": {}}",
                                         "{\"regex\": \"a\"}",
                                         "{\"response_format\": {\"type\": \"json_object\"}}",
                                         "{\"tool_choice\": \"required\"}",
                                         "{\"text\": {\"format\": {}}}",
                                         "{\"output_config\": {\"format\": {}}}",
                                         "{\"format\": \"json\"}",
                                         "{\"\\u0067rammar\": \"root ::= [a]\"}",
                                         "{\"guided_choice\": [\"a\"]}",
                                         "{\"structured_outputs\": {\"json\": {}}}"};
    static const char plain[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"n\": 2}";
    for (size_t i = 0; i < COUNT_OF(bodies); i++)
        ck_assert_msg(fr_routes_slow(bodies[i], strlen(bodies[i])), "%s", bodies[i]);
    ck_assert(!fr_routes_slow(plain, strlen(plain)) && !fr_routes_slow(NULL, 0));
}
END_TEST

#define TOOL                                                                                               \
    "'name': 'add', 'description': 'd', '%s': {'type': 'object', 'properties': {'n': {'type': 'integer', " \
    "'minimum': 3, 'maximum': 40}}, 'required': ['n']}"

/* Each dialect has its own way to force calls, and to force texts that follow a schema. */
START_TEST(calls_and_schemas_are_forced) {
    char body[1024];
    server = fr_server_start("-m tools/demo/target -t 2 -c 512");
    for (int named = 0; named < 2; named++) {
        snprintf(body, sizeof body,
                 "{'input': 'Hi', 'parallel_tool_calls': false, 'tool_choice': %s, 'tools': "
                 "[{'type': 'function', " TOOL "}], " SETTING "}",
                 named ? "{'type': 'function', 'name': 'add'}" : "'required'", "parameters");
        json_t *answer = asked(RESPONSES, body, 200), *output = json_object_get(answer, "output");
        const json_t *call = json_array_get(output, json_array_size(output) - 1);
        ck_assert_str_eq(text_at(call, "type"), "function_call");
        ck_assert_str_eq(text_at(call, "name"), "add");
        json_t *arguments = value_of(text_at(call, "arguments"));
        ck_assert(count_at(arguments, "n") >= 3 && count_at(arguments, "n") <= 40);
        json_decref(arguments);
        json_decref(answer);
        snprintf(body, sizeof body,
                 "{'messages': [" USER("'Hi'") "], 'max_tokens': 200, 'tool_choice': {'type': %s, "
                                               "'disable_parallel_tool_use': true}, 'tools': [{" TOOL "}], " SETTING
                                               "}",
                 named ? "'tool', 'name': 'add'" : "'any'", "input_schema");
        answer = asked(MESSAGES, body, 200);
        output = json_object_get(answer, "content");
        call = json_array_get(output, json_array_size(output) - 1);
        ck_assert_str_eq(text_at(answer, "stop_reason"), "tool_use");
        ck_assert_str_eq(text_at(call, "type"), "tool_use");
        const json_t *input = json_object_get(call, "input");
        ck_assert(count_at(input, "n") >= 3 && count_at(input, "n") <= 40);
        json_decref(answer);
    }
    json_t *answer = asked(RESPONSES,
                           "{'input': 'Hi', 'text': {'format': {'type': 'json_schema', 'name': 's', "
                           "'schema': {'enum': ['red', 'green']}}}, " SETTING "}",
                           200);
    const json_t *item = json_array_get(json_object_get(answer, "output"), 0);
    const char *text = text_at(json_array_get(json_object_get(item, "content"), 0), "text");
    ck_assert_msg(strcmp(text, "\"red\"") == 0 || strcmp(text, "\"green\"") == 0, "%s", text);
    json_decref(answer);
    fr_server_stop(&server);
}
END_TEST

/* "functions" is OpenAI's older form of tools. The answer must have a call in this form, whole and as a stream. The
 * prompt of the next turn must contain the call. */
START_TEST(functions_are_called) {
    char body[1024];
    server = fr_server_start("-m tools/demo/target -t 2 -c 512");
    for (int form = 0; form < 2; form++) {
        snprintf(body, sizeof body,
                 "{'messages': [" USER("'Hi'") ", {'role': 'assistant', 'content': null, 'function_call': {'name': "
                                               "'add', 'arguments': '{\\'n\\': 7}'}}, {'role': 'function', 'name': "
                                               "'add', 'content': '8'}], 'functions': [{" TOOL
                                               "}], 'function_call': {'name': 'add'}, 'max_tokens': 99, "
                                               "'stream': %s, " SETTING "}",
                 "parameters", form ? "true" : "false");
        json_t *choice, *said;
        if (form) {
            char *events = streamed("/v1/chat/completions", body);
            ck_assert_msg(!strstr(events, "tool_calls"), "%s", events);
            ck_assert_msg(strstr(events, "\"finish_reason\":\"function_call\"") != NULL, "%s", events);
            char *begin = strstr(events, "\"function_call\":{");
            ck_assert_msg(begin != NULL, "%s", events);
            begin += strlen("\"function_call\":");
            said = json_loads(begin, JSON_DISABLE_EOF_CHECK, NULL);
            choice = NULL;
            free(events);
        } else {
            json_t *answer = asked("/v1/chat/completions", body, 200);
            choice = json_incref(json_array_get(json_object_get(answer, "choices"), 0));
            ck_assert_str_eq(text_at(choice, "finish_reason"), "function_call");
            ck_assert_ptr_null(json_object_get(json_object_get(choice, "message"), "tool_calls"));
            said = json_incref(json_object_get(json_object_get(choice, "message"), "function_call"));
            json_decref(answer);
        }
        ck_assert_str_eq(text_at(said, "name"), "add");
        json_t *arguments = value_of(text_at(said, "arguments"));
        ck_assert(count_at(arguments, "n") >= 3 && count_at(arguments, "n") <= 40);
        json_decref(arguments);
        json_decref(said);
        json_decref(choice);
    }
    json_decref(asked("/v1/chat/completions",
                      "{'messages': [" USER("'Hi'") "], 'functions': [{'name': 'f'}], 'tools': [{'type': 'function', "
                                                    "'function': {'name': 'f'}}], 'max_tokens': 1}",
                      400));
    fr_server_stop(&server);
}
END_TEST

#define LETTERS   "abcdefghijklmnopqrstuvwxyz"
#define LONG_WORD LETTERS LETTERS LETTERS LETTERS
#define LONG_CALL                                                                                \
    "'name': 'add', '%s': {'type': 'object', 'properties': {'s': {'enum': ['" LONG_WORD "']}}, " \
    "'required': ['s']}"

/* The limit of tokens cuts off a call. The answer must have the call with its arguments so far, and must report that
 * the limit ended it. In a chat and in /v1/responses, the arguments are the text so far. In /v1/messages they are an
 * object with those members that could be closed. */
START_TEST(calls_are_cut_off) {
    char body[1024];
    server = fr_server_start("-m tools/demo/target -t 2 -c 512");
    snprintf(body, sizeof body,
             "{'messages': [" USER("'Hi'") "], 'max_tokens': 30, 'tool_choice': 'required', "
                                           "'tools': [{'type': 'function', 'function': {" LONG_CALL "}}], " SETTING "}",
             "parameters");
    json_t *answer = asked("/v1/chat/completions", body, 200);
    const json_t *choice = json_array_get(json_object_get(answer, "choices"), 0);
    const json_t *calls = json_object_get(json_object_get(choice, "message"), "tool_calls");
    const char *said = text_at(json_object_get(json_array_get(calls, 0), "function"), "arguments");
    static const char whole[] = "{\"s\":\"" LONG_WORD "\"}";
    ck_assert_str_eq(text_at(choice, "finish_reason"), "length");
    ck_assert_msg(strlen(said) > 6 && strlen(said) < strlen(whole), "%s", said);
    ck_assert_msg(strncmp(said, whole, strlen(said)) == 0, "%s", said);
    snprintf(body, sizeof body,
             "{'messages': [" USER("'Hi'") "], 'max_tokens': 30, 'tool_choice': {'type': 'any'}, "
                                           "'tools': [{" LONG_CALL "}], " SETTING "}",
             "input_schema");
    json_t *message = asked(MESSAGES, body, 200);
    const json_t *block = json_array_get(json_object_get(message, "content"), 0);
    ck_assert_str_eq(text_at(message, "stop_reason"), "max_tokens");
    ck_assert_str_eq(text_at(block, "type"), "tool_use");
    ck_assert_str_eq(text_at(json_object_get(block, "input"), "s"), said + strlen("{\"s\":\""));
    snprintf(body, sizeof body,
             "{'input': 'Hi', 'max_output_tokens': 30, 'tool_choice': 'required', 'tools': "
             "[{'type': 'function', " LONG_CALL "}], " SETTING "}",
             "parameters");
    json_t *response = asked(RESPONSES, body, 200);
    const json_t *item = json_array_get(json_object_get(response, "output"), 0);
    ck_assert_str_eq(text_at(response, "status"), "incomplete");
    ck_assert_str_eq(text_at(item, "status"), "incomplete");
    ck_assert_str_eq(text_at(item, "arguments"), said);
    json_decref(response);
    json_decref(message);
    json_decref(answer);
    fr_server_stop(&server);
}
END_TEST

/* Claude Code writes one line that is different in each request. The server must remove this line from the prompt.
 * Otherwise no prompt would have the same beginning as the previous one. The line may be a whole block, the first line
 * of a block, inside a text, or in a message of a chat. */
START_TEST(a_changing_header_is_left_out) {
    static const struct {
        const char *path, *body;
    } cases[] = {
        {MESSAGES, "{'system': [%s{'type': 'text', 'text': 'Be brief.'}], 'messages': [" USER("'Hi'") "]}"},
        {MESSAGES, "{'system': [{'type': 'text', 'text': '%sBe brief.'}], 'messages': [" USER("'Hi'") "]}"},
        {MESSAGES, "{'system': 'Be brief.\\n%sAnd kind.', 'messages': [" USER("'Hi'") "]}"},
        {MESSAGES, "{%s'messages': [" USER("'Hi'") "]}"},
        {RESPONSES, "{'instructions': '%sBe brief.', 'input': 'Hi'}"},
        {"/v1/chat/completions", "{'messages': [{'role': 'system', 'content': [%s{'type': 'text', 'text': 'Be "
                                 "brief.'}]}, " USER("'Hi'") "]}"},
        {"/v1/chat/completions", "{'messages': [{'role': 'developer', 'content': '%sBe brief.'}, " USER("'Hi'") "]}"},
        {"/api/chat", "{'messages': [{'role': 'system', 'content': '%sBe brief.'}, " USER("'Hi'") "]}"}};
    static const char line[] = "x-anthropic-billing-header: cc_version=2.1.90.a1; cc_entrypoint=cli; cch=1eef3;";
    char header[256], body[1024];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        json_t *prompts[2];
        for (size_t with = 0; with < 2; with++) {
            bool block = strstr(cases[i].body, "[%s") != NULL;
            bool alone = strncmp(cases[i].body, "{%s", 3) == 0;
            snprintf(header, sizeof header,
                     alone   ? "'system': '%s', "
                     : block ? "{'type': 'text', 'text': '%s'}, "
                             : "%s\\n",
                     line);
            snprintf(body, sizeof body, cases[i].body, with ? header : "");
            prompts[with] = rendered(cases[i].path, body);
        }
        ck_assert_ptr_null(strstr(json_string_value(prompts[0]), "billing"));
        ck_assert_msg(json_equal(prompts[0], prompts[1]), "%s: %s", body, json_string_value(prompts[1]));
        json_decref(prompts[0]);
        json_decref(prompts[1]);
    }
}
END_TEST

/* An agent shortens its conversation when an error has a message that the agent knows. Such messages are OpenAI's
 * message with its code, llama.cpp's message and Anthropic's message. The server must use them to report a full
 * context. */
START_TEST(a_full_context_is_told_in_known_words) {
    static const struct {
        const char *path, *body;
        bool code;
    } cases[] = {{"/v1/chat/completions", "{'messages': [" USER("'%s'") "], 'stream': %s}", true},
                 {"/v1/completions", "{'prompt': '%s', 'stream': %s}", true},
                 {RESPONSES, "{'input': '%s', 'stream': %s}", true},
                 {MESSAGES, "{'messages': [" USER("'%s'") "], 'stream': %s}", false},
                 {"/completion", "{'prompt': '%s', 'stream': %s}", false},
                 {"/api/chat", "{'messages': [" USER("'%s'") "], 'stream': %s}", false},
                 {"/api/generate", "{'prompt': '%s', 'stream': %s}", false}};
    char longer[512] = "", body[1024];
    for (int i = 0; i < 100; i++) strncat(longer, "a b ", sizeof longer - strlen(longer) - 1);
    server = fr_server_start("-m tools/demo/target -t 1 -c 64");
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        const char *path = cases[i / 2].path;
        snprintf(body, sizeof body, cases[i / 2].body, longer, i % 2 ? "true" : "false");
        json_t *answer = asked(path, body, 400), *error = json_object_get(answer, "error");
        const char *says = json_is_string(error) ? json_string_value(error) : text_at(error, "message");
        if (strcmp(path, MESSAGES) == 0) {
            ck_assert_int_eq(strncmp(says, "prompt is too long: ", 20), 0);
            ck_assert_msg(strstr(says, " tokens > 64 maximum"), "%s", says);
            ck_assert_str_eq(text_at(error, "type"), "invalid_request_error");
        } else {
            ck_assert_msg(strstr(says, "exceeds the available context size"), "%s: %s", path, says);
            ck_assert_msg(strstr(says, "maximum context length is 64 tokens"), "%s: %s", path, says);
        }
        if (cases[i / 2].code) ck_assert_str_eq(text_at(error, "code"), "context_length_exceeded");
        json_decref(answer);
    }
    fr_server_stop(&server);
}
END_TEST

/* The log must name each kind of ignored member once. With --quiet it must name none. */
START_TEST(what_is_passed_over_is_said_once) {
    for (int quiet = 0; quiet < 2; quiet++) {
        server = fr_server_start("-m tools/demo/target -t 1 -c 128%s", quiet ? " --quiet" : "");
        for (int i = 0; i < 3; i++) {
            json_decref(asked(RESPONSES,
                              "{'input': [{'role': 'user', 'content': 'a'}, {'type': 'ghost_snapshot'}], "
                              "'tools': [{'type': 'web_search'}], 'fancy': 1, 'max_output_tokens': 1}",
                              200));
            json_decref(asked("/v1/chat/completions",
                              "{'messages': [" USER("'a'") "], 'fancy\\u001b': 1, "
                                                           "'max_tokens': 1}",
                              200));
            json_decref(asked(
                MESSAGES,
                "{'max_tokens': 1, 'messages': [" USER(
                    "'a'") ", {'role': 'assistant', 'content': "
                           "[{'type': 'tool_use', 'id': 'c', 'name': 'f', 'input': {}}]}, {'role': 'user', "
                           "'content': [{'type': 'tool_result', 'tool_use_id': 'c', 'content': [{'type': 'image', "
                           "'source': {'type': 'base64', 'media_type': 'image/png', 'data': 'AA=='}}]}]}]}",
                200));
        }
        char *said = fr_server_said(&server);
        static const char *const words[] = {"\"ghost_snapshot\"", "\"web_search\"", "\"fancy\"", "\"fancy?\"",
                                            "\"image_url\" in the results"};
        for (size_t i = 0; i < COUNT_OF(words); i++) {
            const char *first = strstr(said, words[i]);
            ck_assert_msg(quiet ? !first : first && !strstr(first + 1, words[i]), "%s: %s", words[i], said);
        }
        free(said);
        fr_server_stop(&server);
    }
}
END_TEST

/* ------------------------------------------------------------------------------------------- recorded conversations */

/* Returns the data of the last event of this type. The caller frees it. */
static json_t *last_event(const char *events, const char *type) {
    char head[64];
    const char *last = NULL;
    snprintf(head, sizeof head, "event: %s\ndata: ", type);
    for (const char *at = events; (at = strstr(at, head)); at++) last = at;
    return last ? json_loads(last + strlen(head), JSON_DISABLE_EOF_CHECK, NULL) : NULL;
}

/* Makes the body of one turn of a recorded conversation. In its texts, @TURN@ is replaced by a text that is different
 * in each turn. */
static json_t *body_of_turn(const json_t *recorded, const json_t *list, size_t turn) {
    json_t *body = json_deep_copy(json_object_get(recorded, "body"));
    json_object_set(body, text_at(recorded, "list"), (json_t *)(uintptr_t)list);
    json_object_set_new(body, "temperature", json_integer(0));
    const char *limit = json_object_get(body, "max_tokens") ? "max_tokens" : "max_output_tokens";
    json_object_set_new(body, limit, json_integer(3));
    char *text = json_dumps(body, JSON_COMPACT);
    for (char *at = text; (at = strstr(at, "@TURN@"));) at[1] = (char)('a' + turn);
    json_decref(body);
    body = json_loads(text, 0, NULL);
    free(text);
    return body;
}

/* Sends a turn and returns its number of prompt tokens. Sets *cached to the number of those that were in the cache.
 * Both numbers come from the last event of the stream. */
static size_t ask_turn(const json_t *recorded, const json_t *body, size_t *cached) {
    int status;
    fr_client *client = fr_ask_begin(server.port, text_at(recorded, "path"), body, &status);
    char *events = fr_client_body(client, NULL);
    ck_assert_msg(status == 200, "%d: %s", status, events);
    json_t *end = last_event(events, "response.incomplete"), *delta = last_event(events, "message_delta");
    if (!end) end = last_event(events, "response.completed");
    ck_assert_msg(end || delta, "%s", events);
    const json_t *usage = json_object_get(delta ? delta : json_object_get(end, "response"), "usage");
    *cached = (size_t)count_at(delta ? usage : json_object_get(usage, "input_tokens_details"),
                               delta ? "cache_read_input_tokens" : "cached_tokens");
    size_t prompt = (size_t)count_at(usage, "input_tokens") + (delta ? *cached : 0);
    json_decref(end);
    json_decref(delta);
    free(events);
    fr_client_close(client);
    return prompt;
}

/* Sends ten turns as Codex or Claude Code does, and one more turn after the agent has shortened the conversation. Each
 * of the ten prompts must be longer than the previous one, because it has new input. At least half of the previous
 * prompt must be found in the cache. The test can't require more, because a template may drop the reasoning of earlier
 * turns. */
START_TEST(recorded_agents_are_answered) {
    static const char *const files[] = {"tests/data/agents/codex.json", "tests/data/agents/claude-code.json"};
    json_t *recorded = json_load_file(files[_i], 0, NULL), *list = json_array(), *turn;
    ck_assert_ptr_nonnull(recorded);
    server = fr_server_start("-m tools/demo/target -t 2 -c 4096 -np 1");
    size_t i, before = 0, cached;
    json_array_foreach (json_object_get(recorded, "turns"), i, turn) {
        json_array_extend(list, turn);
        json_t *body = body_of_turn(recorded, list, i);
        size_t prompt = ask_turn(recorded, body, &cached);
        ck_assert_msg(prompt > before, "turn %zu: %zu tokens behind %zu", i, prompt, before);
        ck_assert_msg(2 * cached >= before, "turn %zu: %zu of %zu tokens were kept", i, cached, before);
        before = prompt;
        json_decref(body);
    }
    ck_assert_uint_eq(i, 10);
    json_t *body = body_of_turn(recorded, json_object_get(recorded, "compacted"), i);
    size_t prompt = ask_turn(recorded, body, &cached);
    ck_assert_msg(prompt < before && cached > 0, "%zu tokens, %zu of them kept", prompt, cached);
    json_decref(body);
    json_decref(list);
    json_decref(recorded);
    fr_server_stop(&server);
}
END_TEST

/* Counting tokens must give the same number as running them, even if they don't fit in the context. Errors must have
 * the format of each dialect. A key may come in either of two headers. */
START_TEST(counts_errors_and_keys) {
    server = fr_server_start("-m tools/demo/target -t 1 -c 64");
    json_t *answer = asked(MESSAGES, "{'max_tokens': 1, 'messages': [" USER("'a b c'") "]}", 200);
    json_int_t taken = count_at(json_object_get(answer, "usage"), "input_tokens");
    json_decref(answer);
    answer = asked(MESSAGES "/count_tokens", "{'messages': [" USER("'a b c'") "]}", 200);
    ck_assert_int_eq(count_at(answer, "input_tokens"), taken);
    json_decref(answer);
    answer = asked(RESPONSES "/input_tokens", "{'input': 'a b c'}", 200);
    ck_assert_int_eq(count_at(answer, "input_tokens"), taken);
    ck_assert_str_eq(text_at(answer, "object"), "response.input_tokens");
    json_decref(answer);

    answer = asked("/v1/chat/completions/input_tokens", "{'messages': [" USER("'a b c'") "]}", 200);
    ck_assert_int_eq(count_at(answer, "input_tokens"), taken);
    json_decref(answer);

    char longer[1024] = "{'messages': [{'role': 'user', 'content': '";
    for (int i = 0; i < 100; i++) strncat(longer, "a b ", sizeof longer - strlen(longer) - 1);
    strncat(longer, "'}]}", sizeof longer - strlen(longer) - 1);
    answer = asked(MESSAGES "/count_tokens", longer, 200);
    ck_assert_int_gt(count_at(answer, "input_tokens"), 100);
    json_decref(answer);
    answer = asked("/infill", "{'input_prefix': 'a'}", 400);
    ck_assert_ptr_nonnull(strstr(text_at(json_object_get(answer, "error"), "message"), "no tokens for code"));
    json_decref(answer);
    answer = asked(MESSAGES, longer, 400);
    ck_assert_str_eq(text_at(answer, "type"), "error");
    ck_assert_str_eq(text_at(json_object_get(answer, "error"), "type"), "invalid_request_error");
    json_decref(answer);
    answer =
        asked(RESPONSES, "{'input': 'a', 'text': {'format': {'type': 'json_schema', 'schema': {'not': {}}}}}", 400);
    ck_assert_str_eq(text_at(json_object_get(answer, "error"), "type"), "invalid_request_error");
    json_decref(answer);
    fr_server_stop(&server);

    server = fr_server_start("-m tools/demo/target -t 1 -c 64 --api-key secret");
    static const char *const headers[] = {NULL, "X-Api-Key: secret\r\n", "Authorization: Bearer secret\r\n",
                                          "x-api-key: wrong\r\n"};
    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        char *text;
        int status = fr_client_once(server.port, "POST", MESSAGES "/count_tokens", headers[i],
                                    "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", &text);
        ck_assert_int_eq(status, i == 0 || i == 3 ? 401 : 200);
        if (status == 401) ck_assert_ptr_nonnull(strstr(text, "\"type\":\"authentication_error\""));
        if (status == 401) ck_assert_int_eq(strncmp(text, "{\"type\":\"error\"", 15), 0);
        free(text);
    }
    fr_server_stop(&server);
}
END_TEST

FR_SUITE("serve_dialects") {
    TCase *tests = tcase_create("serve_dialects");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, requests_are_those_of_a_chat, 0, (int)COUNT_OF(read_cases));
    tcase_add_loop_test(tests, what_is_no_request_is_named, 0, (int)COUNT_OF(refused_cases));
    tcase_add_loop_test(tests, code_stands_between_tokens, 0, (int)COUNT_OF(infill_cases));
    tcase_add_test(tests, what_can_not_be_filled_in_is_named);
    tcase_add_test(tests, a_suffix_stands_between_tokens);
    tcase_add_test(tests, texts_are_those_of_a_chat);
    tcase_add_test(tests, logprobs_are_those_of_a_chat);
    tcase_add_test(tests, ollama_says_the_same);
    tcase_add_test(tests, ollama_tells_logprobs);
    tcase_add_test(tests, grammars_are_slow);
    tcase_add_test(tests, calls_and_schemas_are_forced);
    tcase_add_test(tests, functions_are_called);
    tcase_add_test(tests, calls_are_cut_off);
    tcase_add_test(tests, a_changing_header_is_left_out);
    tcase_add_test(tests, a_full_context_is_told_in_known_words);
    tcase_add_test(tests, what_is_passed_over_is_said_once);
    tcase_add_loop_test(tests, recorded_agents_are_answered, 0, 2);
    tcase_add_test(tests, counts_errors_and_keys);
    suite_add_tcase(suite, tests);
}
