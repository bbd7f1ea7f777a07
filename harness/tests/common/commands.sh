# What the fake engine does for memra's other commands; sourced by fake_engine.sh.
case $command in
  check)
    status=pass identical=true distance=0.03
    [ -n "$wrong" ] && status=fail
    hash=$(cat "$here/logits" 2>/dev/null || echo h1)
    case $mode in
      grouping) identical=false ;;
      far) distance=0.2 ;;
      newbits) hash=h2 ;;
      checkdies) kill -ABRT $$ ;;
      hangs) sleep 1000 ;;
    esac
    echo "{\"kernels\":[{\"family\":\"matmul\",\"key\":\"matmul/Q4_1\",\"status\":\"$status\",\"max_err\":0.5,\"reason\":null}],"
    echo "\"model\":{\"identical\":$identical,\"first_difference\":null,\"mean_abs_dlogprob\":$distance,\"logits_hash\":\"$hash\",\"order_keys\":[\"o\"]}}"
    { [ $status = fail ] || [ $identical = false ] || [ $distance = 0.2 ]; } && exit 4 ;;
  pull) [ "$mode" = offline ] && { echo "no network" >&2; exit 5; }; echo "$here/model.gguf" ;;
  synth) : > "$here/tiny.gguf"; echo "$here/tiny.gguf" ;;
  sweep) [ "$mode" = sweepfails ] && exit 4; [ "$mode" = sweephangs ] && sleep 1000 ;;
  ab) [ "$mode" = behind ] && exit 1; [ "$mode" = panics ] && exit 101 ;;
  doctor) [ "$mode" = nolog ] && rm -r "$here"/data/nightly/* ;;
  *) echo "$command" ;;
esac
